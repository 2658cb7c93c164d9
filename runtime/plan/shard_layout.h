// Stage 3: the layout of one rank's shards. All shards of a rank share one range of elements, ordered by
// parameter group, within a group by parameter, frozen parameters last, so that parameters, master weights,
// momentum, variance and gradients are one buffer each and the optimizer runs over ranges instead of
// parameters (docs/zero.md P4, P8).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/partition.h"

namespace shardscope::plan {

/// Shards start at multiples of this, for aligned vector loads and collectives; costs less than 16 bytes per
/// parameter.
inline constexpr std::int64_t kShardAlignmentBytes = 16;

struct ShardLayout {
  std::uint32_t world = 1;
  std::int64_t elems = 0;                  ///< of one rank, with the padding of every shard
  std::int64_t trainable_elems = 0;        ///< the first of these, which the optimizer updates
  std::vector<ParamId> order;              ///< order of the shards in the range
  std::vector<std::uint32_t> group;        ///< parameter groups, by ParamId
  std::vector<ParamPartition> partitions;  ///< by ParamId
  std::vector<std::int64_t> shard_offset;  ///< by ParamId: first element within the rank's range
  std::int64_t padding_elems = 0;          ///< over all ranks: world * elems minus the model's elements
};

/// `alignment` (elements): every shard starts at a multiple of it. Throws std::invalid_argument when it
/// is below 1.
[[nodiscard]] ShardLayout make_shard_layout(const ModelPlan& model, std::uint32_t world,
                                            std::int64_t alignment = 1);
/// The same from sizes, by ParamId. Without `groups`: one group.
[[nodiscard]] ShardLayout make_shard_layout(const std::vector<std::int64_t>& param_elems,
                                            const std::vector<bool>& trainable, std::uint32_t world,
                                            std::int64_t alignment = 1,
                                            const std::vector<std::uint32_t>& groups = {});

/// The units of the optimizer step (P8): shards accumulate in parameter order until their sum reaches
/// `sub_group_elems`; a unit ends at a parameter, and at the end of a parameter group. Ascending and without
/// gaps over [0, layout.trainable_elems). Throws std::invalid_argument when `sub_group_elems` is below 1.
[[nodiscard]] std::vector<Range> make_sub_groups(const ShardLayout& layout, std::int64_t sub_group_elems);

}  // namespace shardscope::plan
