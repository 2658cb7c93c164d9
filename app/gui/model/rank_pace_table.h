// How often each rank was slow recently: cached between frames, since it sorts thousands of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "app/analysis/slow_rank.h"
#include "app/gui/model/analyst.h"

namespace shardscope::gui {

/// Number of recent steps in which a rank was slow.
struct Slowness {
  std::uint32_t slow = 0, of = 0;  ///< slow steps, and steps compared
  /// Slow in most of the steps and in at least three: on a shared machine single steps are noise.
  [[nodiscard]] bool lasting() const noexcept { return slow >= kLeastSlowSteps && slow * 2 > of; }
  static constexpr std::uint32_t kLeastSlowSteps = 3;
};
/// Number of steps compared, up to the one shown.
inline constexpr std::size_t kPaceSteps = 8;

/// For the step shown and the steps before it.
struct RankPaceTable {
  analysis::OthersMedian medians;            ///< computation in the step shown
  std::map<std::uint32_t, Slowness> recent;  ///< by rank
  std::int64_t longest_ns = 0;               ///< computation in the step shown
};

class RankPaceTables {
 public:
  /// `shown`: one of the analysis's steps, or null. Recomputed when either argument changes.
  [[nodiscard]] const RankPaceTable& of(const std::shared_ptr<const Analysis>& analysis,
                                        const StepTimes* shown);

 private:
  std::shared_ptr<const Analysis> analysis_;
  const StepTimes* shown_ = nullptr;
  RankPaceTable table_;
};

}  // namespace shardscope::gui
