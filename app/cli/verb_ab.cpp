// `ab`: two or more configurations in turn (A B A B ...), so that drift of the machine affects all, then the
// comparison over all repeats.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/cli/comparison_text.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/say.h"
#include "app/cli/sweep_text.h"
#include "app/cli/training_options.h"
#include "app/cli/verb.h"
#include "app/store/recording.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

struct AbOptions {
  LaunchOptions launch;
  std::vector<std::string> configs, set_a, set_b;
  std::string command_a, command_b;   ///< any PyTorch training, as shell commands; instead of configurations
  std::vector<std::string> commands;  ///< any number of sides
  std::string sweep;                  ///< KEY=VALUE,VALUE,...: a side for each value
  std::uint32_t repeat = 3;
  std::string out = "shardscope-ab";
  bool json = false, view = false;
};

/// The configuration or command run as A, B, ...
struct Side {
  std::string config, command;   ///< one of them
  std::vector<std::string> set;  ///< for this side only
  std::string name;              ///< in tables of more than two sides
};

struct Measured {
  std::vector<store::Store> stores;
  std::vector<analysis::Digest> digests;
  std::vector<analysis::Summary> summaries;
  [[nodiscard]] std::vector<analysis::Run> runs() const {
    std::vector<analysis::Run> all;
    for (std::size_t i = 0; i < stores.size(); ++i) all.push_back({&stores[i], &summaries[i], &digests[i]});
    return all;
  }
};

std::string recording_of(const AbOptions& options, std::size_t side, std::uint32_t round) {
  return fmt::format("{}/{}{}.zscope", options.out, static_cast<char>('a' + side), round + 1);
}

/// Before the first run: an existing file would be found too late during the runs.
void keep_earlier(const AbOptions& options, std::size_t sides) {
  if (options.launch.overwrite) return;
  for (std::uint32_t round = 0; round < options.repeat; ++round) {
    for (std::size_t side = 0; side < sides; ++side) {
      const std::string path = recording_of(options, side, round);
      if (!fs::exists(path)) continue;
      throw UserError(fmt::format("--out {}: holds {} already; choose another folder or give --overwrite",
                                  options.out, fs::path(path).filename().string()));
    }
  }
}

/// Runs one command under `shardscope attach`; returns its exit code.
int attach_to(const AbOptions& options, const std::string& command, const std::string& recording) {
  std::vector<std::string> argv{
      sibling_program("shardscope"), "attach", "--record", recording, "--overwrite", "--detail",
      options.launch.detail};
  argv.insert(argv.end(), {"--", "/bin/sh", "-c", command});
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

std::vector<Side> of_commands(const AbOptions& options) {
  if (!options.configs.empty() || !options.set_a.empty() || !options.set_b.empty() || !options.sweep.empty())
    throw UserError(
        "--command: it has its configuration itself; leave out --config, --set-a, --set-b and --sweep", 2);
  std::vector<std::string> commands = options.commands;
  if (commands.empty()) {
    if (options.command_a.empty())
      throw UserError("--command-a: missing; --command-b needs a command to compare with", 2);
    if (options.command_b.empty())
      throw UserError("--command-b: missing; --command-a needs a command to compare with", 2);
    commands = {options.command_a, options.command_b};
  } else if (!options.command_a.empty() || !options.command_b.empty()) {
    throw UserError("--command: give all commands by it, or two by --command-a and --command-b", 2);
  } else if (commands.size() == 1) {
    throw UserError("--command: only one; give another to compare with", 2);
  }
  std::vector<Side> sides;
  for (const std::string& command : commands)
    sides.push_back({.config = {}, .command = command, .set = {}, .name = command});
  return sides;
}

std::vector<Side> of_sweep(const AbOptions& options) {
  if (options.configs.size() != 1 || !options.set_a.empty() || !options.set_b.empty())
    throw UserError("--sweep: goes with one --config, without --set-a and --set-b", 2);
  const std::size_t equals = options.sweep.find('=');
  std::vector<Side> sides;
  if (equals != std::string::npos && equals > 0) {
    const std::string key = options.sweep.substr(0, equals + 1);
    for (std::size_t begin = equals + 1; begin <= options.sweep.size();) {
      const std::size_t end = std::min(options.sweep.find(',', begin), options.sweep.size());
      const std::string set = key + options.sweep.substr(begin, end - begin);
      for (const Side& side : sides) {
        if (side.name == set) throw UserError(fmt::format("--sweep {}: {} twice", options.sweep, set), 2);
      }
      if (end == begin) {
        sides.clear();  // no value: invalid
        break;
      }
      sides.push_back({.config = options.configs[0], .command = {}, .set = {set}, .name = set});
      begin = end + 1;
    }
  }
  if (sides.size() < 2)
    throw UserError(fmt::format("--sweep {}: is not KEY=VALUE,VALUE with two values or more", options.sweep),
                    2);
  return sides;
}

std::vector<Side> of_configs(const AbOptions& options) {
  if (options.configs.empty())
    throw UserError("--config: give one file (with --set-a and --set-b, or --sweep), two or more", 2);
  if (options.configs.size() == 1 && options.set_a == options.set_b)
    throw UserError("--config: only one file and no difference; give a second file or --set-b KEY=VALUE", 2);
  const std::size_t count = std::max<std::size_t>(2, options.configs.size());
  if (count > 2 && !(options.set_a.empty() && options.set_b.empty()))
    throw UserError("--set-a and --set-b: go with one or two files of --config", 2);
  std::vector<Side> sides;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& config = options.configs[std::min(i, options.configs.size() - 1)];
    for (const Side& side : sides) {
      if (count > 2 && side.config == config)
        throw UserError(fmt::format("--config {}: given twice; give each file once", config), 2);
    }
    sides.push_back({.config = config,
                     .command = {},
                     .set = i == 0   ? options.set_a
                            : i == 1 ? options.set_b
                                     : std::vector<std::string>(),
                     .name = config});
  }
  return sides;
}

/// Throws UserError for options that contradict one another.
std::vector<Side> sides_of(const AbOptions& options) {
  std::vector<Side> sides =
      !options.commands.empty() || !options.command_a.empty() || !options.command_b.empty()
          ? of_commands(options)
      : !options.sweep.empty() ? of_sweep(options)
                               : of_configs(options);
  if (sides.size() > kMostSides)
    throw UserError(fmt::format("{} sides: more than {}; compare fewer", sides.size(), kMostSides), 2);
  return sides;
}

void print(const AbOptions& options, const std::vector<Side>& sides, const std::vector<Measured>& measured) {
  if (sides.size() == 2) {
    const analysis::Comparison comparison = analysis::compare(measured[0].runs(), measured[1].runs());
    const analysis::VerdictBasis basis = analysis::verdict_basis(measured[0].runs(), measured[1].runs());
    say_text(stdout, options.json ? instrumentation::plain_json(comparison_json(comparison, basis))
                                  : instrumentation::plain_lines(comparison_text(comparison)));
  } else {
    std::vector<analysis::SweepSide> compared;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      compared.push_back({side_letter(i), measured[i].runs()});
      names.push_back(sides[i].name);
      if (!options.json) say("{}  {}\n", side_letter(i), sides[i].name);
    }
    const analysis::Sweep sweep = analysis::sweep(compared);
    say_text(stdout, options.json ? instrumentation::plain_json(sweep_json(sweep, names))
                                  : instrumentation::plain_lines("\n" + sweep_text(sweep)));
  }
  if (!options.json) say("\nrecordings   {}/a1.zscope {}/b1.zscope ...\n", options.out, options.out);
}

int ab(AbOptions& options) {
  const std::vector<Side> sides = sides_of(options);
  keep_earlier(options, sides.size());
  const bool attaches = !sides.front().command.empty();
  if (attaches) install_interrupt_handler();
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error)
    throw UserError(
        fmt::format("--out {}: {}; choose a folder that can be written", options.out, error.message()));

  std::vector<Measured> measured(sides.size());
  for (std::uint32_t round = 0; round < options.repeat; ++round) {
    for (std::size_t side = 0; side < sides.size(); ++side) {
      LaunchOptions launch_options = options.launch;
      launch_options.config = sides[side].config;
      for (const std::string& set : sides[side].set) launch_options.set.push_back(set);
      launch_options.record = recording_of(options, side, round);
      launch_options.label = fmt::format("{} {}/{}", side_letter(side), round + 1, options.repeat);
      if (attaches) say(stderr, "shardscope: {}\n", launch_options.label);
      const int code = attaches ? attach_to(options, sides[side].command, launch_options.record)
                                : report_end(launch(launch_options));
      if (interrupted()) {
        say(stderr, "shardscope: ab was interrupted ({}) in run {}: nothing is compared\n", interrupt_name(),
            launch_options.label);
        return interrupt_code();
      }
      if (code != 0) return code;
      if (!fs::exists(launch_options.record, error))
        throw UserError(
            fmt::format("{}: no rank came, so there is nothing to compare", launch_options.label));
      store::RecordingInfo info;
      measured[side].stores.push_back(store::open_recording(launch_options.record, &info));
      measured[side].digests.push_back(analysis::digest_of(measured[side].stores.back()));
      measured[side].summaries.push_back(
          analysis::summarize(measured[side].stores.back(), measured[side].digests.back()));
      measured[side].summaries.back().problems = info.problems;
    }
  }
  print(options, sides, measured);
  return 0;
}

}  // namespace

void add_ab(CLI::App& app, Action& action) {
  auto options = std::make_shared<AbOptions>();
  options->launch.steps = 20;
  CLI::App* verb =
      app.add_subcommand("ab", "Run two configurations or more in turn (A B A B ...) and compare them");
  add_training_options(*verb, options->launch);
  verb->add_option("--config", options->configs,
                   "DeepSpeed JSON file of A, then of B, and of more; or one file for all");
  verb->add_option(
      "--command-a", options->command_a,
      "Training command of A, for the shell: 'torchrun train.py'; it is attached to (docs/attach.md)");
  verb->add_option("--command-b", options->command_b, "Training command of B");
  verb->add_option("--command", options->commands, "Training command of A, of B, and so on: once for each")
      ->allow_extra_args(false);
  verb->add_option("--sweep", options->sweep,
                   "KEY=VALUE,VALUE,...: the configuration with each value, compared with the first");
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
