#include "app/gui/model/export_job.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/collector/viewer.h"
#include "app/export/chrome.h"
#include "app/export/csv.h"
#include "app/export/html_report.h"
#include "app/export/kineto.h"
#include "app/export/output_file.h"
#include "app/export/part.h"
#include "app/export/perfetto.h"
#include "app/export/span_walk.h"
#include "app/export/sqlite.h"
#include "app/gui/model/live_notes.h"
#include "instrumentation/sockets.h"

namespace shardscope::gui {
namespace {

/// Thrown in a writer to end the export.
struct ExportCancelled : std::runtime_error {
  ExportCancelled() : std::runtime_error("cancelled") {}
};

}  // namespace

const char* word(ExportFormat format) noexcept {
  static constexpr const char* kWords[] = {"report",         "tables",          "Chrome trace",
                                           "Perfetto trace", "SQLite database", "Kineto traces"};
  return kWords[static_cast<int>(format)];
}

const char* ending(ExportFormat format) noexcept {
  static constexpr const char* kEndings[] = {".html", "-csv", ".json", ".pftrace", ".sqlite", "-kineto"};
  return kEndings[static_cast<int>(format)];
}

void refuse_target(const std::string& path) { exporter::refuse_recording(path); }

void write_whole(const std::string& path, const std::string& text) {
  refuse_target(path);
  exporter::OutputFile file(path);
  file.write([&](std::ostream& out) { out << text; });
  file.commit();
}

ExportJob::~ExportJob() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void ExportJob::start(Order order) {
  {
    const std::lock_guard lock(mutex_);
    if (state_.running) return;
    state_ = {};
    state_.running = true;
    state_.target = order.target;
    began_ = std::chrono::steady_clock::now();
  }
  if (thread_.joinable()) thread_.join();
  cancelled_ = false;
  const instrumentation::BlockSignals blocked;
  thread_ = std::thread([this, order = std::move(order)] { run(order); });
}

ExportJob::State ExportJob::state() const {
  const std::lock_guard lock(mutex_);
  State out = state_;
  if (out.running)
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  return out;
}

void ExportJob::say(std::string what) {
  const std::lock_guard lock(mutex_);
  state_.what = std::move(what);
}

void ExportJob::go_on_or_end() const {
  if (cancelled_) throw ExportCancelled();
}

/// Figures of all steps, the long part of a report. Its share of the steps is shown; a cancel ends it.
analysis::Digest ExportJob::digest(const store::Store& store, const char* of_what) {
  say("computing the figures of " + std::string(of_what));
  constexpr std::chrono::milliseconds kSlice{50};
  const double steps = static_cast<double>(std::max<std::size_t>(store.steps().size(), 1));
  analysis::Digest out;
  while (!out.update(store, kSlice)) {
    go_on_or_end();
    const std::lock_guard lock(mutex_);
    state_.share = static_cast<double>(out.steps().size()) / steps;
  }
  go_on_or_end();
  return out;
}

void ExportJob::report(const Order& order, const store::Store& store, const store::RecordingInfo& info) {
  const analysis::Digest figures = digest(store, "this run");
  const analysis::Summary summary = analysis::whole_summary(store, info, figures);
  std::optional<exporter::ReportComparison> comparison;
  if (!order.other.empty()) {
    store::RecordingInfo info_of_other;
    const store::Store other = store::open_recording(order.other, &info_of_other, store::Verify::as_read);
    const analysis::Digest figures_of_other = digest(other, "the second run");
    const analysis::Summary of_other = analysis::summarize(other, info_of_other, figures_of_other);
    say("comparing with " + order.other);
    // As in the window, where the run that is open is A.
    comparison = {analysis::compare({{&store, &summary, &figures}}, {{&other, &of_other, &figures_of_other}}),
                  "this run", "the second run, " + std::filesystem::path(order.other).filename().string()};
    go_on_or_end();
  }
  say("writing " + order.target);
  // Unreadable notes are reported by the panel Notes.
  std::vector<exporter::Note> notes;
  try {
    const std::string run_id = store.has_tables() ? store.tables().run_id : std::string();
    const std::string path = order.live ? live_notes_path(run_id) : exporter::notes_path(order.recording);
    if (!path.empty()) notes = exporter::read_notes(path, run_id);
  } catch (const std::runtime_error&) {
    notes.clear();
  }
  exporter::write_html_report(order.target, store, summary, info.problems, comparison, notes, nullptr,
                              &figures);
}

void ExportJob::write(const Order& order, const store::Store& store, const store::RecordingInfo& info) {
  if (order.format == ExportFormat::report) {
    report(order, store, info);
    return;
  }
  say("writing " + order.target);
  const exporter::WalkProgress progress(store, [this](double share) {
    go_on_or_end();
    const std::lock_guard lock(mutex_);
    state_.share = share;
  });
  exporter::ExportPart part;
  if (order.range_ns) std::tie(part.range.from_ns, part.range.to_ns) = *order.range_ns;
  switch (order.format) {
    case ExportFormat::report:
      break;
    case ExportFormat::csv:
      (void)exporter::write_csv(order.target, store, part);
      break;
    case ExportFormat::chrome:
      exporter::write_chrome(order.target, store, part);
      break;
    case ExportFormat::perfetto:
      exporter::write_perfetto(order.target, store, part);
      break;
    case ExportFormat::sqlite:
      exporter::write_sqlite(order.target, store, part);
      break;
    case ExportFormat::kineto:
      (void)exporter::write_kineto(order.target, store, {.ranks = {}, .steps = order.steps});
      break;
  }
}

store::Store ExportJob::read_live(const Order& order, store::RecordingInfo& info) {
  using Link = collector::Viewer::Link;
  constexpr std::chrono::seconds kMostSilence{20};
  info.path = order.recording;
  collector::Viewer viewer(order.recording, order.key_file);
  store::Store store;
  auto changed = std::chrono::steady_clock::now();
  std::uint64_t most_behind = 1;
  for (Link link = viewer.link(); link != Link::live && link != Link::ended; link = viewer.link()) {
    go_on_or_end();
    const auto now = std::chrono::steady_clock::now();
    if (viewer.poll(store, std::chrono::milliseconds(50))) {
      changed = now;
    } else if (now - changed > kMostSilence) {
      throw std::runtime_error(order.recording + ": the collector does not answer");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::uint64_t behind = viewer.traffic().items_behind;
    most_behind = std::max(most_behind, behind);
    const std::lock_guard lock(mutex_);
    state_.share = 1 - static_cast<double>(behind) / static_cast<double>(most_behind);
  }
  if (!store.has_tables()) throw std::runtime_error(order.recording + ": no event of any rank has arrived");
  if (const std::uint64_t missing = viewer.traffic().items_missing; missing > 0)
    info.problems.push_back("the collector had already discarded " + std::to_string(missing) +
                            " chunks of events and messages");
  if (viewer.link() != Link::ended)
    info.problems.push_back("read while the run went on: what came later is not here");
  return store;
}

store::Store ExportJob::read(const Order& order, store::RecordingInfo& info) {
  say(order.live ? "reading the run so far" : "reading the recording");
  return order.live ? read_live(order, info)
                    : store::open_recording(order.recording, &info, store::Verify::as_read);
}

void ExportJob::run(const Order& order) {
  std::string problem;
  bool ended = false;
  try {
    exporter::refuse_recording(order.target);
    store::RecordingInfo info;
    const store::Store store = read(order, info);
    go_on_or_end();
    write(order, store, info);
  } catch (const ExportCancelled&) {
    ended = true;
  } catch (const std::exception& failed) {
    problem = failed.what();
  }
  const std::lock_guard lock(mutex_);
  state_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  state_.running = false;
  state_.done = true;
  state_.cancelled = ended;
  state_.problem = std::move(problem);
}

}  // namespace shardscope::gui
