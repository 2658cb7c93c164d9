// Computation time of a rank, relative to the other ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "app/gui/model/app_state.h"
#include "app/gui/model/rank_pace_table.h"

namespace shardscope::gui {

struct RankPace {
  std::optional<std::uint32_t> step;  ///< the step of the figures; nullopt: not analysed
  std::int64_t busy_ns = 0;           ///< computation; 0: unknown
  double others_ns = 0;               ///< median of the other ranks; 0: none
  Slowness recent = {};  ///< over the last steps: is_slow() relative to the others (app/analysis/slow_rank.h)
  [[nodiscard]] bool straggler() const noexcept { return recent.lasting(); }
};
/// "1.20 times"
[[nodiscard]] std::string times_text(double times);
/// "It computed 33.1 ms in step 7, 1.20 times the median of the others (27.6 ms). Slow in 6 of the last 8
/// steps."; empty if unknown.
[[nodiscard]] std::string pace_text(const RankPace& pace);
/// As in the summary: "The others waited 12.3 ms in all for it: it entered 24 collectives last."; empty if
/// they did not.
[[nodiscard]] std::string waited_for_text(const AppState& app, std::uint32_t rank);
/// Times of the step whose figures are shown at the cursor (measured_step_of). At the live edge, which the
/// analysis trails, those of the newest analysed step.
[[nodiscard]] const StepTimes* step_shown(const AppState& app);  ///< null: not analysed
/// Paces of all ranks. Valid for one frame: refers to the current analysis and its cached table.
class RankPaces {
 public:
  explicit RankPaces(const AppState& app);
  [[nodiscard]] RankPace of(std::uint32_t rank) const;
  [[nodiscard]] std::optional<std::uint32_t> step() const;  ///< of the figures; nullopt: not analysed
  [[nodiscard]] std::set<std::uint32_t> slow() const;       ///< the stragglers
  /// The rank with the longest computation; nullopt if unknown or with a single rank.
  [[nodiscard]] std::optional<std::uint32_t> slowest() const;
  /// Computation of slowest(); 0: unknown.
  [[nodiscard]] std::int64_t longest_ns() const noexcept { return table_->longest_ns; }

 private:
  const StepTimes* times_;
  const RankPaceTable* table_;
};
[[nodiscard]] RankPace rank_pace(const AppState& app, std::uint32_t rank);
/// Selects the rank with the longest computation in the step shown, expands its lanes and scrolls to it.
/// Returns a message about it, or why there is none.
[[nodiscard]] std::string go_to_slowest(AppState& app);

}  // namespace shardscope::gui
