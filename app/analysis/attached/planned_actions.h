// Actions at each boundary of an attached run with given settings: gathers, waits, buckets. DeepSpeed's are
// planned by the scheduler and bucket planner of runtime/plan, which follow DeepSpeed, over the boundaries
// that the run passed.
#pragma once

#include <cstdint>
#include <vector>

#include "app/analysis/attached/recorded_costs.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::analysis::attached {

struct GatherAction {
  std::uint32_t id = 0;  ///< unique in the step
  std::int64_t elems = 0;
};

/// The fetch at a boundary, in the order in which the host executes it.
struct FetchAction {
  std::vector<GatherAction> issued_first;  ///< gathers of the module's missing parameters; at most one
  std::vector<GatherAction> waited;        ///< the host waits for these, then unpacks them
  std::vector<GatherAction> prefetched;    ///< at most one
};

struct PieceActions {
  std::vector<FetchAction> fetches;
  std::vector<std::int64_t> flushed_elems;  ///< of each bucket that is reduced in the piece
};

struct StepActions {
  std::vector<std::vector<PieceActions>> micro_steps;  ///< by micro-step, then by piece
  std::vector<std::int64_t> after_elems;               ///< gathers after the update, one entry per collective
  std::int64_t peak_gathered_elems = 0;                ///< stage 3, FSDP2: peak of gathered elements
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;  ///< sums over the micro-steps
};

/// The number of micro-steps, at least 1. Throws std::invalid_argument if their actions would not fit in
/// memory.
[[nodiscard]] std::size_t checked_micro_steps(const RecordedCosts& costs, std::int64_t micro_steps);

/// Plans a step that follows a complete trace, with zero.gradient_accumulation_steps micro-steps. Throws
/// std::invalid_argument for limits that no scheduler accepts.
[[nodiscard]] StepActions planned_actions(const RecordedCosts& costs, const plan::ZeroConfig& zero);

/// Adds the ends of backward for which stages 0 to 2 have no hook: a module's backward ends where the next
/// one begins of a module that is not its descendant. Unchanged if post-backward gates were recorded.
[[nodiscard]] std::vector<Piece> with_backward_ends(const std::vector<Piece>& pieces,
                                                    const plan::ModelPlan& model);

}  // namespace shardscope::analysis::attached
