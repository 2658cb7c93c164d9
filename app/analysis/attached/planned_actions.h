// What DeepSpeed does at each boundary of an attached run under given settings: gathers, waits, buckets.
// Decided by the scheduler and the bucket planner of runtime/plan, which follow DeepSpeed's, over the
// boundaries that the run was seen to pass.
#pragma once

#include <cstdint>
#include <vector>

#include "app/analysis/attached/recorded_costs.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::analysis::attached {

struct GatherAction {
  std::uint32_t id = 0;  ///< within the step
  std::int64_t elems = 0;
};

/// What a boundary fetches, in the order in which the host does it.
struct FetchAction {
  std::vector<GatherAction> issued_first;  ///< what the module lacks; at most one
  std::vector<GatherAction> waited;        ///< for these the host waits, then unpacks them
  std::vector<GatherAction> prefetched;    ///< at most one
};

struct PieceActions {
  std::vector<FetchAction> fetches;
  std::vector<std::int64_t> flushed_elems;  ///< of each bucket that is reduced within the piece
};

struct StepActions {
  std::vector<std::vector<PieceActions>> micro_steps;  ///< by micro-step, by piece
  std::vector<std::int64_t> after_elems;  ///< gathered after the update, collective by collective
  std::int64_t peak_gathered_elems = 0;   ///< stage 3: most full elements held at a time
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;  ///< of the micro-steps
};

/// Of a step that follows a complete trace, of zero.gradient_accumulation_steps micro-steps. Throws
/// std::invalid_argument on limits that a scheduler cannot have.
[[nodiscard]] StepActions planned_actions(const RecordedCosts& costs, const plan::ZeroConfig& zero);

/// The pieces with the ends of backward that stages 0 to 2 have no hook for: a module's is where the next
/// backward begins of a module that is not below it. As they are where a post-backward was recorded.
[[nodiscard]] std::vector<Piece> with_backward_ends(const std::vector<Piece>& pieces,
                                                    const plan::ModelPlan& model);

}  // namespace shardscope::analysis::attached
