// `ab`: two configurations in turn (A B A B ...), so that drift of the machine falls on both, then the
// comparison over all repeats.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "app/analysis/summary.h"
#include "app/cli/comparison_text.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/say.h"
#include "app/cli/training_options.h"
#include "app/cli/verb.h"
#include "app/store/recording.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

struct AbOptions {
  LaunchOptions launch;
  std::vector<std::string> configs, set_a, set_b;
  std::string command_a, command_b;  ///< any PyTorch training, by the shell; in place of configurations
  std::uint32_t repeat = 3;
  std::string out = "shardscope-ab";
  bool json = false, view = false;
};

struct Side {
  std::vector<store::Store> stores;
  std::vector<analysis::Summary> summaries;
  [[nodiscard]] std::vector<analysis::Run> runs() const {
    std::vector<analysis::Run> all;
    for (std::size_t i = 0; i < stores.size(); ++i) all.push_back({&stores[i], &summaries[i]});
    return all;
  }
};

std::string recording_of(const AbOptions& options, int side, std::uint32_t round) {
  return fmt::format("{}/{}{}.zscope", options.out, side == 0 ? "a" : "b", round + 1);
}

/// Before the first run: one in the middle of it would be found out too late.
void keep_earlier(const AbOptions& options) {
  if (options.launch.overwrite) return;
  for (std::uint32_t round = 0; round < options.repeat; ++round) {
    for (const int side : {0, 1}) {
      const std::string path = recording_of(options, side, round);
      if (!fs::exists(path)) continue;
      throw UserError(fmt::format("--out {}: holds {} already; choose another folder or give --overwrite",
                                  options.out, fs::path(path).filename().string()));
    }
  }
}

[[nodiscard]] bool attaches(const AbOptions& options) {
  return !options.command_a.empty() || !options.command_b.empty();
}

/// One command under `shardscope attach`; its exit code.
int attach_to(const AbOptions& options, int side, const std::string& recording) {
  std::vector<std::string> argv{
      sibling_program("shardscope"), "attach", "--record", recording, "--overwrite", "--detail",
      options.launch.detail};
  argv.insert(argv.end(), {"--", "/bin/sh", "-c", side == 0 ? options.command_a : options.command_b});
  Process run(argv, Process::Output::inherit);
  bool passed_on = false;
  while (run.running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (interrupted() && !passed_on) {
      run.signal(interrupt_code() - 128);
      passed_on = true;
    }
  }
  return run.wait();
}

void check(const AbOptions& options) {
  if (attaches(options)) {
    if (options.command_a.empty())
      throw UserError("--command-a: missing; --command-b needs a command to compare with", 2);
    if (options.command_b.empty())
      throw UserError("--command-b: missing; --command-a needs a command to compare with", 2);
    if (!options.configs.empty() || !options.set_a.empty() || !options.set_b.empty())
      throw UserError("--command-a: it has its configuration itself; leave out --config, --set-a and --set-b",
                      2);
    return;
  }
  if (options.configs.empty() || options.configs.size() > 2) {
    throw UserError("--config: give one file (with --set-a and --set-b) or two", 2);
  }
  if (options.configs.size() == 1 && options.set_a == options.set_b) {
    throw UserError("--config: only one file and no difference; give a second file or --set-b KEY=VALUE", 2);
  }
}

int ab(AbOptions& options) {
  check(options);
  keep_earlier(options);
  if (attaches(options)) install_interrupt_handler();
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error)
    throw UserError(
        fmt::format("--out {}: {}; choose a folder that can be written", options.out, error.message()));

  Side sides[2];
  for (std::uint32_t round = 0; round < options.repeat; ++round) {
    for (int side = 0; side < 2; ++side) {
      LaunchOptions launch_options = options.launch;
      if (!attaches(options))
        launch_options.config =
            options
                .configs[std::min<std::size_t>(static_cast<std::size_t>(side), options.configs.size() - 1)];
      for (const std::string& set : side == 0 ? options.set_a : options.set_b)
        launch_options.set.push_back(set);
      launch_options.record = recording_of(options, side, round);
      launch_options.label = fmt::format("{} {}/{}", side == 0 ? "A" : "B", round + 1, options.repeat);
      if (attaches(options)) say(stderr, "shardscope: {}\n", launch_options.label);
      const int code = attaches(options) ? attach_to(options, side, launch_options.record)
                                         : report_end(launch(launch_options));
      if (interrupted()) {
        say(stderr, "shardscope: ab was interrupted ({}) in run {}: nothing is compared\n", interrupt_name(),
            launch_options.label);
        return interrupt_code();
      }
      if (code != 0) return code;
      store::RecordingInfo info;
      sides[side].stores.push_back(store::open_recording(launch_options.record, &info));
      sides[side].summaries.push_back(analysis::summarize(sides[side].stores.back()));
      sides[side].summaries.back().problems = info.problems;
    }
  }
  const analysis::Comparison comparison = analysis::compare(sides[0].runs(), sides[1].runs());
  const analysis::VerdictBasis basis = analysis::verdict_basis(sides[0].runs(), sides[1].runs());
  say_text(stdout, options.json ? instrumentation::plain_json(comparison_json(comparison, basis))
                                : instrumentation::plain_lines(comparison_text(comparison)));
  if (!options.json) say("\nrecordings   {}/a1.zscope {}/b1.zscope ...\n", options.out, options.out);
  return 0;
}

}  // namespace

void add_ab(CLI::App& app, Action& action) {
  auto options = std::make_shared<AbOptions>();
  options->launch.steps = 20;
  CLI::App* verb = app.add_subcommand("ab", "Run two configurations in turn (A B A B ...) and compare them");
  add_training_options(*verb, options->launch);
  verb->add_option("--config", options->configs, "DeepSpeed JSON file of A, then of B; or one file for both");
  verb->add_option(
      "--command-a", options->command_a,
      "Training command of A, for the shell: 'torchrun train.py'; it is attached to (docs/attach.md)");
  verb->add_option("--command-b", options->command_b, "Training command of B");
  verb->add_option("--set-a", options->set_a, "KEY=VALUE for A only");
  verb->add_option("--set-b", options->set_b, "KEY=VALUE for B only");
  verb->add_option("--repeat", options->repeat, "How often each is run")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--out", options->out, "Folder for the recordings")->capture_default_str();
  verb->add_flag("--overwrite", options->launch.overwrite,
                 "Replace the recordings that an earlier comparison left there");
  verb->add_flag("--json", options->json, "The comparison as JSON");
  verb->callback([options, &action] { action = [options] { return ab(*options); }; });
}

}  // namespace shardscope::cli
