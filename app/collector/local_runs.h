// Runs in progress on this machine, to which a viewer can connect without a given address.
#pragma once

#include <string>
#include <vector>

namespace shardscope::collector {

struct LocalRun {
  std::string endpoint;
  std::string command;  ///< command line of the collector's process, on one line; empty: not known
  friend bool operator==(const LocalRun&, const LocalRun&) = default;
};
/// This user's runs on the loopback interface, by endpoint. Runs on a socket file (ipc) are not found.
[[nodiscard]] std::vector<LocalRun> local_runs();

/// "your runs that listen: tcp://127.0.0.1:5711 (shardscope run ...)", without `endpoint`, long commands
/// truncated; empty where there are none.
[[nodiscard]] std::string text_of(const std::vector<LocalRun>& runs, const std::string& endpoint);

}  // namespace shardscope::collector
