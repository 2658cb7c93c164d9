// How long a rank computed, beside the others.
#pragma once

#include <cstdint>
#include <optional>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

struct RankPace {
  std::optional<std::uint32_t> step;  ///< that this is of; nothing where that step is not analysed
  std::int64_t busy_ns = 0;           ///< computation; 0: not known
  bool straggler = false;             ///< out of line
};
/// In the step whose figures are shown at the time that is looked at (measured_step_of). At the live edge,
/// where the analysis is a moment behind, in the newest that is analysed.
[[nodiscard]] const StepTimes* step_shown(const AppState& app);  ///< null: not analysed
[[nodiscard]] RankPace rank_pace(const AppState& app, std::uint32_t rank);

}  // namespace shardscope::gui
