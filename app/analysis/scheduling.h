// Where the ZeRO-3 scheduler of a recorded run and another one part, at the module boundaries that the run
// was seen to pass. Both are computed (runtime/plan); nothing here is measured.
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
  std::string missing;                          ///< why nothing is said; all else is empty then
  plan::Compat run = plan::Compat::shardscope;  ///< whose decisions the run followed
  plan::Compat other = plan::Compat::deepspeed;
  std::uint32_t micro_step = 0;              ///< whose boundaries these are
  std::vector<store::Store::GateRow> gates;  ///< of each boundary (SchedulerDifference::visit)
  plan::SchedulerComparison comparison;
  std::string caveat;  ///< what the computation leaves out; may be empty
  /// One line: how many boundaries differ and what that costs or saves, or that none does.
  [[nodiscard]] std::string text() const;
};

/// Runs both schedulers over the boundaries of that micro-step, with the limits of the recorded
/// configuration, until each follows a complete trace. Compared with DeepSpeed's; a run that follows
/// DeepSpeed or the documents is compared with ours.
[[nodiscard]] Scheduling compare_scheduling(const store::Store& store, std::uint32_t rank,
                                            std::int64_t at_ns);
/// The last micro-step of the lowest rank.
[[nodiscard]] Scheduling compare_scheduling(const store::Store& store);

}  // namespace shardscope::analysis
