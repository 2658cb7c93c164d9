// The ranks of the timeline from top to bottom.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

[[nodiscard]] const char* word(RankOrder order) noexcept;
[[nodiscard]] const char* word(RankHeight height) noexcept;
/// By number; or those first that computed longest, or whose communication was exposed longest, in the step
/// whose figures are shown (rank_pace). Ranks without figures come last. Empty where all are in order of
/// their numbers.
[[nodiscard]] std::vector<std::uint32_t> rank_order(const AppState& app);

}  // namespace shardscope::gui
