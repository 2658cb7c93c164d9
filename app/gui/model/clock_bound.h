// How well times of different ranks can be compared: for the range that is on show, and for the run.
#pragma once

#include <cstdint>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

struct ClockBound {
  std::int64_t in_view_ns = 0;  ///< the largest residual that applies to what is shown
  std::int64_t in_run_ns = 0;
};
/// Of a rank: its own.
[[nodiscard]] ClockBound clock_bound(const AppState& app, std::uint32_t rank);
/// Of all ranks: that of the one whose clock is known worst.
[[nodiscard]] ClockBound clock_bound(const AppState& app);

}  // namespace shardscope::gui
