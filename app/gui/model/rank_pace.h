// How long a rank computed, beside the others.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "app/gui/model/app_state.h"
#include "app/gui/model/rank_pace_table.h"

namespace shardscope::gui {

struct RankPace {
  std::optional<std::uint32_t> step;  ///< that this is of; nothing where that step is not analysed
  std::int64_t busy_ns = 0;           ///< computation; 0: not known
  double others_ns = 0;               ///< the median of the other ranks; 0: there are none
  Slowness recent = {};  ///< of the last steps: is_slow() beside the others (app/analysis/slow_rank.h)
  [[nodiscard]] bool straggler() const noexcept { return recent.lasting(); }
};
/// "1.20 times"
[[nodiscard]] std::string times_text(double times);
/// "It computed 33.1 ms in step 7, 1.20 times the median of the others (27.6 ms). Slow in 6 of the last 8
/// steps."; empty where that is not known.
[[nodiscard]] std::string pace_text(const RankPace& pace);
/// As the summary says it: "The others waited 12.3 ms in all for it: it entered 24 collectives last."; empty
/// where they did not.
[[nodiscard]] std::string waited_for_text(const AppState& app, std::uint32_t rank);
/// In the step whose figures are shown at the time that is looked at (measured_step_of). At the live edge,
/// where the analysis is a moment behind, in the newest that is analysed.
[[nodiscard]] const StepTimes* step_shown(const AppState& app);  ///< null: not analysed
/// Paces of all ranks. For one frame: it refers to the analysis that is shown, and to what is kept of it.
class RankPaces {
 public:
  explicit RankPaces(const AppState& app);
  [[nodiscard]] RankPace of(std::uint32_t rank) const;
  [[nodiscard]] std::optional<std::uint32_t> step() const;  ///< that is shown; nothing: not analysed
  [[nodiscard]] std::set<std::uint32_t> slow() const;       ///< those that are stragglers
  /// That computed longest; nothing where that is not known, or there is one rank only.
  [[nodiscard]] std::optional<std::uint32_t> slowest() const;
  /// Computation; 0: not known.
  [[nodiscard]] std::int64_t longest_ns() const noexcept { return table_->longest_ns; }

 private:
  const StepTimes* times_;
  const RankPaceTable* table_;
};
[[nodiscard]] RankPace rank_pace(const AppState& app, std::uint32_t rank);
/// Selects the rank that computed longest in the step shown, opens its lanes and goes to it. Returns what to
/// say of it, or why there is none.
[[nodiscard]] std::string go_to_slowest(AppState& app);

}  // namespace shardscope::gui
