// The moments around which a recording with limits kept everything: where they are on the ruler, what is said
// of each, and the way there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/store/retention.h"

namespace shardscope::gui {

struct AppState;

/// Of one moment, or of several whose marks would touch. In points, within the scale.
struct MomentMark {
  float x = 0;                       ///< of the first that is in view
  float kept_from = 0, kept_to = 0;  ///< what is kept around them
  bool shown = false;                ///< the moment itself is in view; else only what is kept around it
  std::vector<std::size_t> moments;
};
/// From left to right. `moments`: by time.
[[nodiscard]] std::vector<MomentMark> moment_marks(std::span<const store::Moment> moments,
                                                   const TimeScale& scale);
/// "slow_step at 8.27 s (step 5457): step 5457 took ...", and what is kept of the run around it.
[[nodiscard]] std::string tip_of(const store::Moment& moment);
/// The same of each, a line for the first ones.
[[nodiscard]] std::string tip_of(std::span<const store::Moment> moments, const MomentMark& mark);
/// All that is kept around it is in view, the cursor at the moment, and its rank is shown where it is of one.
void go_to_moment(AppState& app, const store::Moment& moment);

}  // namespace shardscope::gui
