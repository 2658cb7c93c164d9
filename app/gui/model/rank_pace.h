// How long a rank computed, beside the others.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "app/analysis/slow_rank.h"
#include "app/gui/model/app_state.h"

namespace shardscope::gui {

struct RankPace {
  std::optional<std::uint32_t> step;  ///< that this is of; nothing where that step is not analysed
  std::int64_t busy_ns = 0;           ///< computation; 0: not known
  double others_ns = 0;               ///< the median of the other ranks; 0: there are none
  bool straggler = false;             ///< is_slow() beside them (app/analysis/slow_rank.h)
};
/// "1.20 times"
[[nodiscard]] std::string times_text(double times);
/// "It computed 33.1 ms in step 7, 1.20 times the median of the others (27.6 ms)."; empty where that is not
/// known.
[[nodiscard]] std::string pace_text(const RankPace& pace);
/// As the summary says it: "The others waited 12.3 ms in all for it: it came last to 24 collectives."; empty
/// where they did not.
[[nodiscard]] std::string waited_for_text(const AppState& app, std::uint32_t rank);
/// In the step whose figures are shown at the time that is looked at (measured_step_of). At the live edge,
/// where the analysis is a moment behind, in the newest that is analysed.
[[nodiscard]] const StepTimes* step_shown(const AppState& app);  ///< null: not analysed
/// Paces of all ranks: the median that they are compared with is taken once. For one frame: it refers to the
/// analysis that is shown.
class RankPaces {
 public:
  explicit RankPaces(const AppState& app);
  [[nodiscard]] RankPace of(std::uint32_t rank) const;
  [[nodiscard]] std::set<std::uint32_t> slow() const;  ///< those that are stragglers
  /// That computed longest; nothing where that is not known, or there is one rank only.
  [[nodiscard]] std::optional<std::uint32_t> slowest() const;
  [[nodiscard]] std::int64_t longest_ns() const noexcept {
    return longest_ns_;
  }  ///< computation; 0: not known

 private:
  const StepTimes* times_;
  std::int64_t longest_ns_ = 0;
  analysis::OthersMedian medians_;
};
[[nodiscard]] RankPace rank_pace(const AppState& app, std::uint32_t rank);
/// Selects the rank that computed longest in the step shown, opens its lanes and goes to it. Returns what to
/// say of it, or why there is none.
[[nodiscard]] std::string go_to_slowest(AppState& app);

}  // namespace shardscope::gui
