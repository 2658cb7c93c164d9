// How well times of different ranks can be compared: for the range that is on show, and for the run.
#pragma once

#include <cstdint>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

struct ClockBound {
  std::int64_t in_view_ns = 0;  ///< the largest residual that applies to what is shown
  std::int64_t in_run_ns = 0;
};
/// Bound of one rank's clock.
[[nodiscard]] ClockBound clock_bound(const AppState& app, std::uint32_t rank);
/// Largest bound of all ranks' clocks.
[[nodiscard]] ClockBound clock_bound(const AppState& app);

}  // namespace shardscope::gui
