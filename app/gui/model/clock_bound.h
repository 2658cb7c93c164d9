// Accuracy of comparing times of different ranks, for the visible range and for the whole run.
#pragma once

#include <cstdint>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

struct ClockBound {
  std::int64_t in_view_ns = 0;  ///< the largest residual in the visible range
  std::int64_t in_run_ns = 0;
};
/// Bound of one rank's clock.
[[nodiscard]] ClockBound clock_bound(const AppState& app, std::uint32_t rank);
/// Largest bound of all ranks' clocks.
[[nodiscard]] ClockBound clock_bound(const AppState& app);

}  // namespace shardscope::gui
