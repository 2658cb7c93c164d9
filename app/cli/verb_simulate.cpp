// `simulate`: a simulated run, sent to a recording, a dashboard or a collector.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/config_override.h"
#include "app/cli/launch.h"
#include "app/cli/made_runs.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/say.h"
#include "app/cli/simulation.h"
#include "app/cli/verb.h"
#include "app/collector/collector.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

struct SimulateOptions {
  std::uint32_t ranks = 8;
  std::string model = "gpt3-6.7b";
  // For a GPT given by its size; 0: not given.
  std::int64_t layers = 0, width = 0, heads = 0, context = 0, vocabulary = 0;
  std::string config = (fs::path(data_root()) / "samples" / "zero3-bf16.json").string();
  std::vector<std::string> set;
  std::int64_t micro_steps = 0;  ///< 0: the configuration's
  std::string hardware = "h100";
  std::int64_t steps = 3;
  std::string detail = "params";
  std::uint64_t seed = 1234;
  double jitter = 0;
  std::vector<std::string> stragglers;
  std::vector<std::string> slow_links;
  bool no_memory_limit = false;
  std::string record, key;
  std::vector<std::string> connect;
  bool live = false;
  bool view = false;
  bool json = false;
};

std::string model_of(const SimulateOptions& options) {
  std::string shape;
  const auto add = [&](const char* name, std::int64_t value) {
    if (value > 0) shape += fmt::format("{}{}={}", shape.empty() ? "" : ",", name, value);
  };
  add("layers", options.layers);
  add("width", options.width);
  add("heads", options.heads);
  add("context", options.context);
  add("vocabulary", options.vocabulary);
  return shape.empty() ? options.model : "gpt:" + shape;
}

SimulationCommand command_of(const SimulateOptions& options, const std::string& config,
                             const std::string& config_name) {
  SimulationCommand command;
  command.model = model_of(options);
  command.config = config;
  command.config_name = config_name;
  command.hardware = options.hardware;
  command.ranks = options.ranks;
  command.steps = options.steps;
  command.detail = options.detail;
  command.seed = options.seed;
  command.jitter = options.jitter;
  command.stragglers = options.stragglers;
  command.slow_links = options.slow_links;
  command.key = options.key;
  command.live = options.live;
  command.no_memory_limit = options.no_memory_limit;
  command.json = options.json;
  return command;
}

void check(const SimulateOptions& options) {
  if (!fs::exists(options.config)) {
    throw UserError(fmt::format("--config {}: no such file", options.config));
  }
  if (options.model.ends_with(".json") && !fs::exists(options.model)) {
    throw UserError(fmt::format("--model {}: no such file", options.model));
  }
  keep_made_run("-o", options.record);
}

int simulate(const SimulateOptions& options) {
  check(options);
  std::vector<std::string> set = options.set;
  if (options.micro_steps > 0) {
    set.push_back(fmt::format("gradient_accumulation_steps={}", options.micro_steps));
  }
  const TemporaryConfig changed(config_with(options.config, set), options.config, set);
  // Without --set the user's own file is read, so that messages have its name and lines.
  const std::string config = set.empty() ? options.config : changed.path();
  install_interrupt_handler();
  allow_connections();

  std::optional<collector::Collector> collector;
  std::vector<std::string> publish = options.connect;
  if (publish.empty() && (!options.record.empty() || options.view)) {
    collector::CollectorOptions collecting;
    collecting.listen = "tcp://127.0.0.1:0";
    collecting.record_path = options.record;
    collector.emplace(collecting);
    publish = {collector->publish_endpoint()};
  }
  SimulationCommand command = command_of(options, config, set.empty() ? "" : changed.name());
  if (collector) command.key = collector->keys() + "/publish.key";
  std::unique_ptr<Process> dashboard;
  if (options.view) {
    dashboard = std::make_unique<Process>(
        std::vector<std::string>{sibling_program("shardscope-gui"), "--connect", publish.front(), "--key",
                                 collector->keys() + "/control.key"},
        Process::Output::inherit);
  }
  const Played played = play(command, publish, [](const std::string& line) {
    say("{}\n", line);
    std::fflush(stdout);
  });
  if (played.code != 0) {
    const bool recorded = interrupted() && collector && !options.record.empty();
    say(stderr, "shardscope: {}{}\n", played.failure,
        recorded ? fmt::format("; {} holds what came until then", options.record) : "");
    return played.code;
  }
  if (dashboard) {
    say(stderr, "shardscope: the simulation has ended; close the window to finish\n");
    while (dashboard->running() && !interrupted()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  nlohmann::json result =
      options.json ? nlohmann::json::parse(played.outcome, nullptr, false) : nlohmann::json::object();
  if (collector) {
    collector->stop();
    const collector::CollectorStatus status = collector->status();
    if (!status.recording_error.empty()) {
      say(stderr, "shardscope: {}\n", status.recording_error);
      return 1;
    }
    result["dropped"] = status.dropped;
    if (!options.record.empty()) {
      result["recording"] = options.record;
      result["recording_bytes"] = fs::file_size(options.record);
      if (!options.json) {
        say("{}: {} events, {:.1f} MB\n", options.record, status.events,
            static_cast<double>(fs::file_size(options.record)) * 1e-6);
      }
    }
  }
  if (options.json) say_text(stdout, instrumentation::plain_json(result.dump(2)) + "\n");
  return 0;
}

/// Names of the included files: "a100, h100".
std::string hardware_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& file :
       fs::directory_iterator(fs::path(data_root()) / "assets" / "hardware", error))
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names.empty() ? "A name" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* verb = app.add_subcommand(
      "simulate", "A run that is never made: any model, ranks and hardware, with the events of a real one");
  CLI::Option* model = verb->add_option("--model", options->model,
                                        "Model: a name (gpt2, gpt3-6.7b, gpt3-13b, gpt3-175b, ...) or a JSON "
                                        "file with a module tree (docs/models.md)")
                           ->capture_default_str();
  const auto size = [&](const char* name, std::int64_t& value, const char* what) {
    verb->add_option(name, value, what)->check(kAboveZero)->excludes(model);
  };
  size("--layers", options->layers, "Instead of --model: a GPT of N blocks (default: gpt2's 12)");
  size("--width", options->width, "of width N (768)");
  size("--heads", options->heads, "with N attention heads (12)");
  size("--context", options->context, "on sequences of N tokens (1024)");
  size("--vocab", options->vocabulary, "and a vocabulary of N tokens (50257)");
  verb->add_option("--ranks", options->ranks, "Number of ranks")->check(kAboveZero)->capture_default_str();
  verb->add_option("--config", options->config,
                   "DeepSpeed JSON file (docs/configuration.md); default: samples/zero3-bf16.json");
  verb->add_option("--set", options->set,
                   "KEY=VALUE over the configuration, e.g. zero_optimization.stage=3; repeatable");
  verb->add_option("--micro-steps", options->micro_steps,
                   "gradient_accumulation_steps over the configuration")
      ->check(kAboveZero);
  verb->add_option("--hardware", options->hardware, hardware_names() + " or a JSON file (docs/simulate.md)")
      ->capture_default_str();
  verb->add_option("--steps", options->steps, "Optimizer steps")->check(kAboveZero)->capture_default_str();
  verb->add_option("--detail", options->detail, "What the ranks emit")
      ->check(CLI::IsMember(detail_names()))
      ->capture_default_str();
  verb->add_option("--straggler", options->stragglers,
                   "RANK:FACTOR, a rank that takes FACTOR times as long to compute; repeatable");
  verb->add_option("--slow-link", options->slow_links,
                   "RANK:FACTOR, a rank whose links take FACTOR times as long to move bytes; repeatable");
  verb->add_option("--jitter", options->jitter, "Each rank's own work takes 1 +- this many times as long")
      ->check(kUpToOne);
  verb->add_option("--seed", options->seed, "of --jitter")->capture_default_str();
  verb->add_flag("--no-memory-limit", options->no_memory_limit,
                 "Go on where the device's memory would not be enough");
  CLI::Option* record = verb->add_option("-o,--record", options->record, "Record to this *.zscope file");
  CLI::Option* connect =
      verb->add_option(
              "--connect", options->connect,
              "Publish to a collector or dashboard that listens here; of several, such as those of the "
              "nodes, the ranks have equal parts, in order")
          ->check(kEndpoint);
  verb->add_option("--key", options->key, "Publishing key for --connect (docs/security.md)")->needs(connect);
  CLI::Option* view = verb->add_flag("--view", options->view, "Open the dashboard on it");
  connect->excludes(record)->excludes(view);
  verb->add_flag("--live", options->live,
                 "Publish events at their time, as a run that is made, not as fast as they are played");
  verb->add_flag("--json", options->json, "Print the outcome as JSON");
  verb->callback([options, &action] { action = [options] { return simulate(*options); }; });
}

}  // namespace shardscope::cli
