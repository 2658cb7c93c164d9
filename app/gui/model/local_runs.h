// Live runs on this machine, as a list for the screen.
#pragma once

#include <optional>
#include <vector>

#include "app/collector/local_runs.h"

namespace shardscope::gui {

using collector::LocalRun;

/// collector::local_runs(), refreshed once per second.
class LocalRuns {
 public:
  [[nodiscard]] const std::vector<LocalRun>& at(double seconds);

 private:
  std::optional<double> looked_at_;
  std::vector<LocalRun> runs_;
};

}  // namespace shardscope::gui
