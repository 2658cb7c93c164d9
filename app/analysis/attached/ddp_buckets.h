// DistributedDataParallel's buckets in an attached run: where each was reduced, and which there are with
// another size. As in Reducer (torch/csrc/distributed/c10d/reducer.cpp), with the recorded order of
// gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/attached/planned_actions.h"
#include "app/analysis/attached/recorded_costs.h"
#include "app/analysis/rank_step.h"

namespace shardscope::analysis::attached {

struct BucketSettings {
  std::optional<std::int64_t> cap_bytes;  ///< of every bucket; nullopt: as recorded
  /// Gradients are reduced in the last micro-step only (no_sync); nullopt: as recorded.
  std::optional<bool> reduce_last_only;
  bool operator==(const BucketSettings&) const = default;
};

/// The buckets reduced in each piece of each micro-step, as recorded.
[[nodiscard]] std::vector<std::vector<std::vector<ReducedBucket>>> reduced_buckets(const store::Store& store,
                                                                                   const RankStep& step);
/// Sets the order of gradients and the buckets from `costs.reduced` and the pieces, which have what was added
/// to the buckets.
void set_bucket_order(RecordedCosts& costs);
/// Whether the actions reduce the recorded buckets where the run did.
[[nodiscard]] bool reduces_as_recorded(const RecordedCosts& costs, const StepActions& actions);

/// Reductions of a step of `micro_steps`. A bucket is reduced when its last gradient is ready: in the
/// backward of the module that has the parameter. `elem_bytes`: of a gradient. Throws std::invalid_argument
/// for settings without effect.
[[nodiscard]] StepActions planned_bucket_actions(const RecordedCosts& costs, const BucketSettings& settings,
                                                 std::int64_t micro_steps, std::int64_t elem_bytes);

}  // namespace shardscope::analysis::attached
