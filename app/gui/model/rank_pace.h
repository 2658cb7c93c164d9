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
/// Paces of all ranks: the median that they are compared with is taken once. For one frame: it refers to the
/// analysis that is shown.
class RankPaces {
 public:
  explicit RankPaces(const AppState& app);
  [[nodiscard]] RankPace of(std::uint32_t rank) const;
  [[nodiscard]] std::int64_t longest_ns() const noexcept {
    return longest_ns_;
  }  ///< computation; 0: not known

 private:
  const StepTimes* times_;
  std::int64_t longest_ns_ = 0;
  double median_ns_ = 0;  ///< 0: of fewer than two ranks
};
[[nodiscard]] RankPace rank_pace(const AppState& app, std::uint32_t rank);

}  // namespace shardscope::gui
