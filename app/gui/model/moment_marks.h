// Moments around which a recording with limits kept all events: their marks on the ruler, tooltips and
// navigation.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/store/retention.h"

namespace shardscope::gui {

struct AppState;

/// Mark of one moment, or of several whose marks would touch. Positions in points, within the scale.
struct MomentMark {
  float x = 0;                       ///< of the first visible moment
  float kept_from = 0, kept_to = 0;  ///< range kept around them
  bool shown = false;                ///< the moment itself is visible, not only its kept range
  std::vector<std::size_t> moments;
};
/// In order from left to right. `moments` must be sorted by time.
[[nodiscard]] std::vector<MomentMark> moment_marks(std::span<const store::Moment> moments,
                                                   const TimeScale& scale);
/// "slow_step at 8.27 s (step 5457): step 5457 took ...", and the range kept around it.
[[nodiscard]] std::string tip_of(const store::Moment& moment);
/// One line per moment, for the first few.
[[nodiscard]] std::string tip_of(std::span<const store::Moment> moments, const MomentMark& mark);
/// Shows the kept range, with the cursor at the moment, and the moment's rank if it has one.
void go_to_moment(AppState& app, const store::Moment& moment);

}  // namespace shardscope::gui
