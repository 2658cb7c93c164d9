// Whether both sides of a comparison have enough steps for a verdict.
#pragma once

#include <cstddef>
#include <vector>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// The first step of a run is not measured if there are several. Steps are counted per run, not over all
/// repeats: a truncated run is mostly warm-up.
struct VerdictBasis {
  static constexpr std::size_t kFewestSteps = 3;
  std::size_t steps_a = 0, steps_b = 0;  ///< measured steps of the side's run with the fewest
  [[nodiscard]] bool enough() const noexcept { return steps_a >= kFewestSteps && steps_b >= kFewestSteps; }
};

[[nodiscard]] VerdictBasis verdict_basis(const std::vector<Run>& a, const std::vector<Run>& b);

}  // namespace shardscope::analysis
