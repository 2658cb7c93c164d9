// Runs that go on here: what a window can connect to without being given an address.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardscope::gui {

struct LocalRun {
  std::string endpoint;
  std::string command;  ///< of the process that its collector is in, on one line; empty: not known
  friend bool operator==(const LocalRun&, const LocalRun&) = default;
};
/// Of this user, on the loopback, by endpoint. Those at a path (ipc) are not found.
[[nodiscard]] std::vector<LocalRun> local_runs();

/// The same, looked for anew once a second.
class LocalRuns {
 public:
  [[nodiscard]] const std::vector<LocalRun>& at(double seconds);

 private:
  std::optional<double> looked_at_;
  std::vector<LocalRun> runs_;
};

}  // namespace shardscope::gui
