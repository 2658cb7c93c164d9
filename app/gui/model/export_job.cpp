#include "app/gui/model/export_job.h"

#include <exception>
#include <optional>
#include <stdexcept>
#include <vector>

#include "app/analysis/summary.h"
#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/html_report.h"
#include "app/export/output_file.h"
#include "app/export/perfetto.h"
#include "app/export/sqlite.h"
#include "app/store/recording.h"
#include "instrumentation/sockets.h"

namespace shardscope::gui {

const char* word(ExportFormat format) noexcept {
  static constexpr const char* kWords[] = {"report", "tables", "Chrome trace", "Perfetto trace",
                                           "SQLite database"};
  return kWords[static_cast<int>(format)];
}

const char* ending(ExportFormat format) noexcept {
  static constexpr const char* kEndings[] = {".html", "-csv", ".json", ".pftrace", ".sqlite"};
  return kEndings[static_cast<int>(format)];
}

ExportJob::~ExportJob() {
  if (thread_.joinable()) thread_.join();
}

void ExportJob::start(ExportFormat format, std::string recording, std::string target) {
  {
    const std::lock_guard lock(mutex_);
    if (state_.running) return;
    state_ = {};
    state_.running = true;
    state_.target = target;
    began_ = std::chrono::steady_clock::now();
  }
  if (thread_.joinable()) thread_.join();
  const instrumentation::BlockSignals blocked;
  thread_ = std::thread([this, format, recording = std::move(recording), target = std::move(target)] {
    run(format, recording, target);
  });
}

ExportJob::State ExportJob::state() const {
  const std::lock_guard lock(mutex_);
  State out = state_;
  if (out.running)
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  return out;
}

void ExportJob::forget() {
  const std::lock_guard lock(mutex_);
  if (!state_.running) state_ = {};
}

void ExportJob::say(std::string what) {
  const std::lock_guard lock(mutex_);
  state_.what = std::move(what);
}

void ExportJob::run(ExportFormat format, const std::string& recording, const std::string& target) {
  std::string problem;
  try {
    say("reading the recording");
    exporter::refuse_recording(target);
    store::RecordingInfo info;
    const store::Store store = store::open_recording(recording, &info, store::Verify::as_read);
    switch (format) {
      case ExportFormat::report: {
        const analysis::Summary summary = analysis::summarize(store);
        say("writing " + target);
        // Those that cannot be read are named by the panel Notes.
        std::vector<exporter::Note> notes;
        try {
          notes = exporter::read_notes(exporter::notes_path(recording),
                                       store.has_tables() ? store.tables().run_id : std::string());
        } catch (const std::runtime_error&) {
          notes.clear();
        }
        exporter::write_html_report(target, store, summary, info.problems, std::nullopt, notes);
        break;
      }
      case ExportFormat::csv:
        say("writing " + target);
        (void)exporter::write_csv(target, store);
        break;
      case ExportFormat::chrome:
        say("writing " + target);
        exporter::write_chrome(target, store);
        break;
      case ExportFormat::perfetto:
        say("writing " + target);
        exporter::write_perfetto(target, store);
        break;
      case ExportFormat::sqlite:
        say("writing " + target);
        exporter::write_sqlite(target, store);
        break;
    }
  } catch (const std::exception& failed) {
    problem = failed.what();
  }
  const std::lock_guard lock(mutex_);
  state_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  state_.running = false;
  state_.done = true;
  state_.problem = std::move(problem);
}

}  // namespace shardscope::gui
