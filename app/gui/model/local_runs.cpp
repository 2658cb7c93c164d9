#include "app/gui/model/local_runs.h"

#include <cmath>

namespace shardscope::gui {

const std::vector<LocalRun>& LocalRuns::at(double seconds) {
  if (!looked_at_ || std::fabs(seconds - *looked_at_) >= 1) {
    looked_at_ = seconds;
    runs_ = collector::local_runs();
  }
  return runs_;
}

}  // namespace shardscope::gui
