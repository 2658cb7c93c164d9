// `check`: a run against a baseline, for CI: exit code 0 within the limits, 1 beyond one, 2 where nothing was
// checked (an unreadable file, a wrong option), 3 where there are too few steps, or too much variation,
// to decide.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>

#include "app/analysis/check.h"
#include "app/analysis/digest.h"
#include "app/analysis/unlike_trainings.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/store/recording.h"

namespace shardscope::cli {
namespace {

constexpr int kBeyond = 1, kNotChecked = 2, kUnknown = 3;

struct CheckOptions {
  std::string recording, baseline, limits = "step_ms=5%,peak=2%", junit;
  bool json = false;
};

int check(const CheckOptions& options) {
  std::vector<analysis::Limit> limits;
  try {
    limits = analysis::parse_limits(options.limits);
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("--fail-over {}", error.what()), kNotChecked);
  }
  const auto open = [](const std::string& path) {
    store::RecordingInfo info;
    store::Store store;
    try {
      store = store::open_recording(path, &info);
    } catch (const std::runtime_error& error) {
      throw UserError(error.what(), kNotChecked);
    }
    for (const std::string& problem : info.problems) say(stderr, "shardscope: {}: {}\n", path, problem);
    return store;
  };
  const store::Store base = open(options.baseline), run = open(options.recording);
  const analysis::Digest base_digest = analysis::digest_of(base), run_digest = analysis::digest_of(run);
  const analysis::Summary of_base = analysis::summarize(base, base_digest),
                          of_run = analysis::summarize(run, run_digest);
  const auto checked = analysis::check({&base, &of_base, &base_digest}, {&run, &of_run, &run_digest}, limits);
  const auto unlike = analysis::unlike_trainings({&base, &of_base}, {&run, &of_run});
  if (!unlike.empty())
    say(stderr, "shardscope: check: not the same training as the baseline{}\n",
        analysis::unlike_text(unlike));
  if (!options.junit.empty()) {
    std::ofstream file(options.junit);
    file << analysis::check_junit(checked, options.recording);
    if (!file.flush())
      throw UserError(options.junit + ": cannot be written; choose another file for --junit", kNotChecked);
  }
  bool beyond = false, unknown = false;
  for (const analysis::Checked& one : checked) {
    beyond = beyond || one.outcome == analysis::Checked::Outcome::beyond;
    unknown = unknown || one.outcome == analysis::Checked::Outcome::undecided ||
              one.outcome == analysis::Checked::Outcome::unknown;
  }
  if (options.json) {
    say_text(stdout, instrumentation::plain_json(analysis::check_json(checked)));
  } else {
    for (const analysis::Checked& one : checked) {
      const auto number = [&](const std::optional<double>& value) {
        return value ? fmt::format("{:.4g} {}", *value, one.unit) : std::string("-");
      };
      say("{:<9} {:<16} {} -> {}: {}; limit {:.4g} %\n", analysis::name_of(one.outcome), one.limit.metric,
          number(one.base), number(one.run), one.why, one.limit.percent);
    }
    if (of_base.link_gbps > 0 || of_run.link_gbps > 0) say("Measured with an emulated link.\n");
    if (of_base.simulated || of_run.simulated) say("Of a run that was simulated.\n");
  }
  return beyond ? kBeyond : unknown ? kUnknown : 0;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = app.add_subcommand(
      "check",
      "A run against a baseline, for CI: exit code 0 within the limits, 1 beyond one, 2 nothing checked (a "
      "file that cannot be read, a wrong option), 3 the steps are too few, or scatter too much, to tell");
  verb->add_option("recording", options->recording, "Recording (*.zscope)")->required();
  verb->add_option("--baseline", options->baseline, "The recording to compare with")->required();
  verb->add_option("--fail-over", options->limits,
                   "By how much figures may get worse: step_ms, tokens_per_s, exposed_comm_ms, idle_ms, "
                   "peak, elements")
      ->capture_default_str();
  verb->add_option("--junit", options->junit, "Write the outcome as JUnit's XML as well");
  verb->add_flag("--json", options->json, "The outcome for programs");
  verb->callback([options, &action] { action = [options] { return check(*options); }; });
}

}  // namespace shardscope::cli
