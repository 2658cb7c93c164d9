// How often each rank was slow of late: kept from frame to frame, since thousands of ranks are sorted for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "app/analysis/slow_rank.h"
#include "app/gui/model/analyst.h"

namespace shardscope::gui {

/// How often a rank was slow of late.
struct Slowness {
  std::uint32_t slow = 0, of = 0;  ///< steps in which it was, of those looked at
  /// Slow in most of the steps, and in more than a moment: one step is noise on any machine that is shared.
  [[nodiscard]] bool lasting() const noexcept { return slow >= kLeastSlowSteps && slow * 2 > of; }
  static constexpr std::uint32_t kLeastSlowSteps = 3;
};
/// Steps that are looked at, up to the one shown.
inline constexpr std::size_t kPaceSteps = 8;

/// Of the step that is shown and the steps before it.
struct RankPaceTable {
  analysis::OthersMedian medians;            ///< computation in the step shown
  std::map<std::uint32_t, Slowness> recent;  ///< by rank
  std::int64_t longest_ns = 0;               ///< computation in the step shown
};

class RankPaceTables {
 public:
  /// `shown`: one of the analysis's steps, or null. Made anew where either is another.
  [[nodiscard]] const RankPaceTable& of(const std::shared_ptr<const Analysis>& analysis,
                                        const StepTimes* shown);

 private:
  std::shared_ptr<const Analysis> analysis_;
  const StepTimes* shown_ = nullptr;
  RankPaceTable table_;
};

}  // namespace shardscope::gui
