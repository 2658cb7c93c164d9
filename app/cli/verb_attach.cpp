// `attach`: any unmodified PyTorch training. The command runs under our collector, with a folder in its
// environment that makes its Python processes load the hooks (python/shardscope).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "app/cli/attach_nodes.h"
#include "app/cli/awaited_ranks.h"
#include "app/cli/checks.h"
#include "app/cli/flight_recorder.h"
#include "app/cli/launch.h"
#include "app/cli/made_runs.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/retention_options.h"
#include "app/cli/say.h"
#include "app/cli/scratch_folder.h"
#include "app/cli/socket_files.h"
#include "app/cli/summary_text.h"
#include "app/cli/verb.h"
#include "app/collector/collector.h"
#include "app/store/recording.h"
#include "assets/assets.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
using Environment = std::vector<std::pair<std::string, std::string>>;

struct AttachOptions {
  collector::CollectorOptions collector;
  RetentionOptions kept;
  NodeOptions nodes;
  std::string detail = "params";
  bool view = false, overwrite = false, nccl_plugin = true;
  std::vector<std::string> command;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw UserError(fmt::format("{}: cannot be written", path));
}

std::string key_of(const collector::Collector& collector, const char* holder) {
  const std::string keys = collector.keys();
  return keys.empty() ? "none" : (fs::absolute(keys) / (std::string(holder) + ".key")).string();
}

/// The key that ranks of other nodes read next to the settings.
std::string copied_key(const ScratchFolder& folder, const std::string& key) {
  if (key == "none") return key;
  std::error_code error;
  std::string copy = folder.file("publish.key");
  fs::copy_file(key, copy, error);
  if (!error) fs::permissions(copy, fs::perms::owner_read | fs::perms::owner_write, error);
  if (error) throw UserError(fmt::format("{}: cannot be copied to {}: {}", key, copy, error.message()));
  return copy;
}

/// Writes the folder's files. Settings are in a file: some launchers pass on PYTHONPATH and little else.
Environment inject(const ScratchFolder& folder, const AttachOptions& options,
                   const collector::Collector& collector) {
  const std::string key = key_of(collector, "publish");
  const bool of_nodes = !options.nodes.folder.empty();
  const nlohmann::json settings = {
      {"endpoint", of_nodes ? endpoint_for_nodes(collector.publish_endpoint(), options.nodes.advertise)
                            : collector.publish_endpoint()},
      {"detail", options.detail},
      {"nccl_plugin", options.nccl_plugin},
      {"run_id", options.collector.run_id},
      {"key_file", of_nodes ? copied_key(folder, key) : key}};
  write_file(folder.file("settings.json"), settings.dump(1));
  write_file(folder.file("sitecustomize.py"), std::string(assets::attach_sitecustomize));
  const char* before = std::getenv("PYTHONPATH");
  const std::string path =
      before != nullptr && *before != '\0' ? folder.path() + ":" + before : folder.path();
  return {{"PYTHONPATH", path}, {"SHARDSCOPE_ATTACH", folder.path()}};
}

/// The content of a recording that stopped before its run. `came`: events that the ranks sent; totals and
/// last loss of those are not in the file.
std::string kept_text(const std::string& record, std::uint64_t came) {
  try {
    store::RecordingInfo info;
    const store::Store store = store::open_recording(record, &info, store::Verify::as_read);
    std::size_t steps = 0;
    for (const store::StepRow& row : store.steps()) steps += row.end_ns != store::kOpen ? 1 : 0;
    return fmt::format("{} holds {} of {} events and {} whole step{}; next: shardscope summary {}", record,
                       info.events, came, steps, steps == 1 ? "" : "s", record);
  } catch (const std::exception& error) {
    return fmt::format("of {} events nothing can be read: {}", came, error.what());
  }
}

void say_end(const AttachOptions& options, const collector::Collector& collector, int exit_code,
             NewRecording& recording) {
  const collector::CollectorStatus status = collector.status();
  std::size_t ranks = 0;
  std::string closing;
  collector.read([&](const store::Store& store) {
    ranks = store.ranks().size();
    closing = closing_text(store, status.events, options.collector.record_path);
  });
  if (ranks == 0) {
    // `python3` starts /usr/bin/python3: /usr/bin/python3 -m pip install FOLDER, as far as it is known.
    const std::string python = python_of(options.command.front());
    // Programs from a wheel do not have the sources.
    const std::filesystem::path package = std::filesystem::path(data_root()) / "python";
    std::string how = python.empty() ? "" : fmt::format("`{}` starts {}", options.command.front(), python);
    if (std::filesystem::exists(package)) {
      how += fmt::format("{}{} -m pip install {}", how.empty() ? "" : ": ",
                         python.empty() ? "python" : python, package.string());
    }
    say(stderr,
        "shardscope: nothing was recorded: no rank came. Is the package `shardscope` installed in the Python "
        "that ran{}, and does it train with DeepSpeed, FSDP2, FSDP1, DDP, Megatron-Core or Colossal-AI? "
        "(docs/attach.md)\n",
        how.empty() ? "" : " (" + how + ")");
    return;
  }
  recording.recording_has_ranks();
  if (status.shed_upstream != 0) {
    say(stderr, "shardscope: {}\n", shed_text(status.shed_upstream, options.collector.upstream));
  }
  if (status.recording_error.empty()) {
    say(stderr, "shardscope: {}\n", closing);
  } else {
    say(stderr, "shardscope: {}\n", kept_text(options.collector.record_path, status.events));
  }
  if (exit_code != 0 && !status.failure.empty())
    say_text(stderr, "shardscope: " + instrumentation::plain_message(status.failure) + "\n");
}

int attach(AttachOptions options) {
  if (!options.overwrite) keep_existing("--record", options.collector.record_path);
  if (options.view && !has_display()) {
    say(stderr, "shardscope: no display (DISPLAY is not set); the run continues without a window\n");
    options.view = false;
  }
  const std::string upstream = options.collector.upstream;
  install_interrupt_handler();
  install_request_handler();
  check_nodes(options.nodes, options.collector, options.kept);
  if (options.collector.run_id.empty()) {
    std::random_device random;
    options.collector.run_id = fmt::format("{:08x}{:08x}", random(), random());
  }
  check(options.kept);
  options.collector.retention = options.kept.limits;
  options.collector.rotation = options.kept.rotation;
  const ScratchFolder folder = options.nodes.folder.empty()
                                   ? ScratchFolder()
                                   : ScratchFolder(options.nodes.folder, ScratchFolder::SeenBy::nodes);
  NewRecording recording(options.collector.record_path);
  SocketFiles sockets;
  collector::Collector collector(options.collector);
  sockets.of(collector.publish_endpoint());
  warn_if_insecure(options.collector, collector.publish_endpoint());
  std::unique_ptr<Process> dashboard;
  if (options.view) {
    dashboard = std::make_unique<Process>(std::vector<std::string>{sibling_program("shardscope-gui"),
                                                                   "--connect", collector.publish_endpoint()},
                                          Process::Output::inherit,
                                          Environment{{"SHARDSCOPE_KEY", key_of(collector, "control")}});
  }
  say(stderr, "shardscope: listening on {}{}; to watch the run: shardscope view {}\n",
      collector.publish_endpoint(), upstream.empty() ? "" : ", passing on to " + upstream,
      upstream.empty() ? endpoint_for_nodes(collector.publish_endpoint(), options.nodes.advertise)
                       : upstream);
  if (options.nccl_plugin) {
    say(stderr,
        "shardscope: ranks that use NCCL load Shardscope's profiler plugin, unless NCCL_PROFILER_PLUGIN "
        "names another "
        "(--no-nccl-plugin: none do)\n");
  }

  Process command(options.command, Process::Output::inherit, inject(folder, options, collector));
  FlightRecorder moments(collector, options.collector, options.kept);
  AwaitedRanks awaited(folder.path());
  bool passed_on = false, has_ranks = false;
  while (command.running()) {
    command.wait_for(std::chrono::milliseconds(50));
    moments.look();
    if (!has_ranks) collector.read([&](const store::Store& store) { has_ranks = !store.ranks().empty(); });
    if (!has_ranks) {
      const std::string text = awaited.look(std::chrono::steady_clock::now());
      if (!text.empty()) say(stderr, "shardscope: {}\n", text);
    }
    if (interrupted() && !passed_on) {
      command.signal(interrupt_code() - 128);  // the command decides how to handle it, as without us
      passed_on = true;
    }
  }
  const int exit_code = command.wait();
  // Messages that ranks sent before they ended may still be in transit: to this collector, or through it to
  // the one above.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(upstream.empty() ? 1 : 10);
  while (std::chrono::steady_clock::now() < until && !collector.status().finished && !interrupted())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (dashboard && !interrupted()) {
    say(stderr, "shardscope: training has ended; close the window to finish\n");
    while (dashboard->running() && !interrupted())
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  collector.stop();
  say_end(options, collector, exit_code, recording);
  const std::string& error = collector.status().recording_error;
  if (!error.empty()) say(stderr, "shardscope: {}\n", error);
  return exit_code != 0 || error.empty() ? exit_code : 1;
}

}  // namespace

void add_attach(CLI::App& app, Action& action) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* verb = app.add_subcommand(
      "attach", "Watch a PyTorch training command as it is: attach [OPTIONS] -- torchrun train.py");
  CLI::Option* record =
      verb->add_option("--record", options->collector.record_path, "Record to this *.zscope file");
  add_retention_options(*verb, options->kept, record);
  verb->add_flag("--overwrite", options->overwrite, "Replace an existing recording");
  verb->add_flag("--view,!--no-view", options->view, "Open the dashboard on the run (default: no)");
  verb->add_option("--detail", options->detail, "What the ranks emit")
      ->check(CLI::IsMember(detail_names()))
      ->capture_default_str();
  verb->add_flag(
      "--nccl-plugin,!--no-nccl-plugin", options->nccl_plugin,
      "Have NCCL load Shardscope's profiler plugin in the ranks, where NCCL_PROFILER_PLUGIN is not set "
      "(default: yes)");
  options->collector.listen = "tcp://127.0.0.1:0";
  verb->add_option("--listen", options->collector.listen, "Endpoint the ranks publish to")
      ->check(kEndpoint)
      ->capture_default_str();
  verb->add_option(
      "--keys", options->collector.keys,
      "Let in programs that have a key of this folder (`shardscope keys DIR`, docs/security.md)");
  verb->add_flag("--insecure", options->collector.insecure, kInsecureText);
  verb->add_option(
      "--run-id", options->collector.run_id,
      "Name of the run, where several nodes have one each of this command (default: one that no other has)");
  CLI::Option* upstream =
      verb->add_option(
              "--upstream", options->collector.upstream,
              "On the other nodes of a run: pass this node's ranks on to the `attach` that listens there")
          ->check(kEndpoint);
  verb->add_option("--upstream-key", options->collector.upstream_key,
                   "Publishing key for it (default: the file that SHARDSCOPE_KEY names)")
      ->needs(upstream);
  verb->add_option("--folder", options->nodes.folder,
                   "Where the command starts ranks on other nodes: make the folder that arms them in this "
                   "one, which all "
                   "nodes share")
      ->check(CLI::ExistingDirectory);
  verb->add_option(
      "--advertise", options->nodes.advertise,
      "With --folder: this node's name or address for ranks of other nodes (default: the host's name)");
  verb->add_option("command", options->command, "The training command, after `--`")->required();
  verb->positionals_at_end();
  verb->callback([options, &action] { action = [options] { return attach(*options); }; });
}

}  // namespace shardscope::cli
