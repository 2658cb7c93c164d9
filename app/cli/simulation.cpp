#include "app/cli/simulation.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <utility>

#include "app/cli/launch.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

std::vector<std::string> arguments_of(const SimulationCommand& command,
                                      const std::vector<std::string>& publish) {
  std::vector<std::string> arguments{sibling_program("zero_simulate")};
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  add("--model", command.model);
  add("--config", command.config);
  add("--config-name", command.config_name);
  add("--hardware", command.hardware);
  add("--hardware-folder", (std::filesystem::path(data_root()) / "assets" / "hardware").string());
  add("--ranks", std::to_string(command.ranks));
  add("--steps", std::to_string(command.steps));
  add("--detail", command.detail);
  add("--seed", std::to_string(command.seed));
  add("--jitter", fmt::format("{}", command.jitter));
  for (const std::string& straggler : command.stragglers) add("--straggler", straggler);
  for (const std::string& link : command.slow_links) add("--slow-link", link);
  for (const std::string& endpoint : publish) add("--publish", endpoint);
  add("--key", command.key);
  if (command.live) arguments.emplace_back("--live");
  if (command.no_memory_limit) arguments.emplace_back("--no-memory-limit");
  if (command.json) arguments.emplace_back("--json");
  return arguments;
}

}  // namespace

void allow_connections() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

Played play(const SimulationCommand& command, const std::vector<std::string>& publish,
            const std::function<void(const std::string&)>& progress) {
  Process player(arguments_of(command, publish), Process::Output::capture);
  Played played;
  const auto take = [&](const std::string& line) {
    static const std::string kPrefix = "shardscope: ";
    if (line.rfind(kPrefix + "warning: ", 0) == 0) {
      if (!command.quiet) say(stderr, "{}\n", line);
    } else if (line.rfind(kPrefix, 0) == 0) {
      // The first one: later lines may be the rest of a name in it.
      if (played.failure.empty()) played.failure = line.substr(kPrefix.size());
    } else if (command.json) {
      played.outcome = line;
    } else if (progress) {
      progress(line);
    }
  };
  bool stopping = false;
  while (player.read_lines(std::chrono::milliseconds(100), take) || player.running()) {
    if (interrupted() && !std::exchange(stopping, true)) player.signal(SIGTERM);
  }
  played.code = player.wait();
  if (stopping) {
    played.code = interrupt_code();
    played.failure = fmt::format("interrupted ({}) before the simulation's end", interrupt_name());
  }
  if (played.code != 0 && played.failure.empty())
    played.failure = fmt::format("zero_simulate ended with code {} and no message", played.code);
  return played;
}

collector::CollectorStatus record_simulation(const SimulationCommand& command, const std::string& path) {
  allow_connections();
  collector::CollectorOptions collecting;
  collecting.listen = "tcp://127.0.0.1:0";
  collecting.record_path = path;
  collector::Collector collector(collecting);
  SimulationCommand with_key = command;
  with_key.key = collector.keys() + "/publish.key";
  const Played played = play(with_key, {collector.publish_endpoint()});
  collector.stop();
  if (played.code != 0) throw UserError(played.failure, played.code);
  const collector::CollectorStatus status = collector.status();
  if (!status.recording_error.empty()) throw UserError(status.recording_error);
  return status;
}

}  // namespace shardscope::cli
