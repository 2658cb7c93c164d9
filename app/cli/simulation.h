// Plays a simulated run: the simulator as a child process, and a collector that records its events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/collector/collector.h"

namespace shardscope::cli {

/// Arguments of zero_simulate; empty ones are omitted.
struct SimulationCommand {
  std::string model, config;
  std::string config_name;  ///< name in messages for a temporary configuration
  std::string hardware;     ///< a name of assets/hardware, or a file
  std::uint32_t ranks = 1;
  std::int64_t steps = 3;
  std::string detail = "params";
  std::uint64_t seed = 1234;
  double jitter = 0;
  std::vector<std::string> stragglers;  ///< RANK:FACTOR
  std::vector<std::string> slow_links;  ///< RANK:FACTOR
  std::string key;
  bool live = false;  ///< events are sent in real time
  bool no_memory_limit = false;
  bool quiet = false;  ///< its warnings are discarded
  bool json = false;
};

struct Played {
  int code = 0;
  std::string failure;  ///< why code is not 0
  std::string outcome;  ///< the JSON line, if requested
};

/// Raises the limit of open files: every rank makes two connections.
void allow_connections();

/// Plays to the end, or until interrupted. Warnings go to standard error, other lines to
/// `progress`. publish: collectors' endpoints, in order of the ranks, which have equal parts; none: events
/// are discarded. Throws UserError when the program cannot be started.
[[nodiscard]] Played play(const SimulationCommand& command, const std::vector<std::string>& publish,
                          const std::function<void(const std::string&)>& progress = {});

/// Plays into a recording at `path`. Throws UserError: the simulator's message, or why nothing was recorded.
collector::CollectorStatus record_simulation(const SimulationCommand& command, const std::string& path);

}  // namespace shardscope::cli
