// Compares the decisions of a recorded run's ZeRO-3 scheduler with those of another one, at the module
// boundaries that the run passed. Both are computed (runtime/plan), not measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/recorded_boundaries.h"
#include "app/store/store.h"
#include "runtime/plan/compare_schedulers.h"

namespace shardscope::analysis {

struct Scheduling {
  std::string missing;                          ///< why there is no comparison; then all else is empty
  plan::Compat run = plan::Compat::shardscope;  ///< the scheduler that the run used
  plan::Compat other = plan::Compat::deepspeed;
  std::uint32_t micro_step = 0;              ///< the one compared
  std::vector<store::Store::GateRow> gates;  ///< of each boundary, by SchedulerDifference::visit
  plan::SchedulerComparison comparison;
  std::string caveat;  ///< what the computation omits; may be empty
  /// One line: how many boundaries differ and what that costs or saves, or that none differs.
  [[nodiscard]] std::string text() const;
};

/// Runs both schedulers over the boundaries of the micro-step at `at_ns`, with the limits of the recorded
/// configuration, until each follows a complete trace. The other scheduler is DeepSpeed's, or ours if the run
/// follows DeepSpeed or the documents.
[[nodiscard]] Scheduling compare_scheduling(const store::Store& store, std::uint32_t rank,
                                            std::int64_t at_ns);
/// Compares the last micro-step of the lowest rank.
[[nodiscard]] Scheduling compare_scheduling(const store::Store& store);

}  // namespace shardscope::analysis
