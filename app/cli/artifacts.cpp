#include "app/cli/artifacts.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "app/analysis/advice.h"
#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/cli/advice_player.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/export/html_report.h"
#include "app/store/recording.h"

namespace shardscope::cli {

void write_report(const std::string& recording, const std::string& html, const std::string& baseline) {
  write_report(open_run(recording), recording, html, baseline);
}

void write_report(const RunSource& run, const std::string& name, const std::string& html,
                  const std::string& baseline) {
  const store::Store& store = run.store;
  const store::RecordingInfo& info = run.info;
  const analysis::Digest digest = analysis::digest_of(store);
  const analysis::Summary summary = analysis::whole_summary(store, info, digest);
  std::optional<exporter::ReportComparison> comparison;
  if (!baseline.empty()) {
    store::RecordingInfo base_info;
    const store::Store base = store::open_recording(baseline, &base_info);
    const analysis::Digest base_digest = analysis::digest_of(base);
    const analysis::Summary base_summary = analysis::summarize(base, base_info, base_digest);
    comparison = {analysis::compare({{&base, &base_summary, &base_digest}}, {{&store, &summary, &digest}}),
                  "the baseline, " + std::filesystem::path(baseline).filename().string(), "this run"};
  }
  std::vector<exporter::Note> notes;
  try {
    if (!run.live)
      notes = exporter::read_notes(exporter::notes_path(name),
                                   store.has_tables() ? store.tables().run_id : std::string());
  } catch (const std::runtime_error& broken) {
    say(stderr, "shardscope: {}; the report has no notes\n", broken.what());
  }
  exporter::ReportFindings findings{analysis::find(store, summary, digest), {}};
  findings.tried =
      analysis::try_advice(findings.findings, run.live ? player_of_live_run() : player_of(name, store));
  exporter::write_html_report(html, store, summary, info.problems, comparison, notes, &findings, &digest);
}

std::vector<std::string> write_screenshots(const std::string& recording, const std::string& folder,
                                           const std::string& size) {
  std::vector<std::string> written;
  // Without "compare", which is empty with one recording.
  for (const char* panel :
       {"workspace", "overview", "timeline", "partition", "memory", "communication", "stepper", "findings"}) {
    if (interrupted()) break;
    const std::string path = fmt::format("{}/{}.png", folder, panel);
    Process render({sibling_program("shardscope-gui"), recording, "--screenshot", path, "--panel", panel,
                    "--size", size},
                   Process::Output::capture);
    std::string output;
    while (!interrupted() && render.read_lines(std::chrono::milliseconds(100),
                                               [&](const std::string& line) { output += line + "\n"; })) {
    }
    if (interrupted()) break;
    if (render.wait() == 0 && std::filesystem::exists(path)) {
      written.push_back(path);
    } else {
      say(stderr, "shardscope: screenshot of {}: {}\n", panel,
          output.empty() ? "failed without a message" : output);
    }
  }
  return written;
}

}  // namespace shardscope::cli
