// FSDP2's decisions at each boundary of an attached run with given settings: which groups of parameters are
// gathered, prefetched, resharded and reduced. As in FSDPParamGroup and FSDPState of
// torch.distributed.fsdp._fully_shard.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/attached/planned_actions.h"
#include "app/analysis/attached/recorded_costs.h"

namespace shardscope::analysis::attached {

/// Settings of fully_shard that a replay can change; nullopt: as recorded.
struct GroupSettings {
  std::optional<bool> reshard_after_forward;                ///< of all groups but the root's
  std::optional<bool> root_reshard_after_forward;           ///< of the root's
  std::optional<std::int64_t> groups_to_forward_prefetch;   ///< the next ones, at each group
  std::optional<std::int64_t> groups_to_backward_prefetch;  ///< 1: FSDP2's own prefetch
  /// Gradients are reduced in the last micro-step only (set_requires_gradient_sync).
  std::optional<bool> reduce_last_only;
  bool operator==(const GroupSettings&) const = default;
};

/// A step with given settings.
struct GroupPlan {
  StepActions actions;
  std::vector<std::vector<GroupDecisions>> decisions;  ///< by micro-step, then by piece
  /// Peak of a rank's gradients, of whole groups and of its shards. Its other model states are constant.
  std::int64_t peak_gradient_bytes = 0;
};

/// Throws std::invalid_argument for settings whose decisions the recording does not determine.
[[nodiscard]] GroupPlan planned_group_actions(const RecordedCosts& costs, const GroupSettings& settings,
                                              std::int64_t micro_steps, std::int64_t grad_bytes);

}  // namespace shardscope::analysis::attached
