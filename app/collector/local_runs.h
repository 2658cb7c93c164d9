// Runs that go on here: what a viewer can connect to without being given an address.
#pragma once

#include <string>
#include <vector>

namespace shardscope::collector {

struct LocalRun {
  std::string endpoint;
  std::string command;  ///< of the process that its collector is in, on one line; empty: not known
  friend bool operator==(const LocalRun&, const LocalRun&) = default;
};
/// Of this user, on the loopback, by endpoint. Those at a path (ipc) are not found.
[[nodiscard]] std::vector<LocalRun> local_runs();

/// "your runs that listen: tcp://127.0.0.1:5711 (shardscope run ...)", those but `endpoint`, long commands
/// cut; empty where there are none.
[[nodiscard]] std::string text_of(const std::vector<LocalRun>& runs, const std::string& endpoint);

}  // namespace shardscope::collector
