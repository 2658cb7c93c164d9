// Which ranks train one copy of the model together, where that is not all of them: DeepSpeed's
// data_parallel_group, which a model-parallel unit (mpu) gives it. Parameters are partitioned, gathered and
// reduced inside a group (P20). Each group holds a copy of its own; the ranks at one place in every group are
// model-parallel peers and read the same data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {

/// `shardscope.data_parallel_groups`: world ranks, ascending in each; empty: all ranks are one group.
using DataParallelGroups = std::vector<std::vector<std::uint32_t>>;

/// Why `world` ranks cannot train in these groups; empty: they can. Every rank is in one group, all groups
/// are of one size.
[[nodiscard]] std::string what_is_wrong(const DataParallelGroups& groups, std::uint32_t world);

/// Ranks that train one copy of the model: a group's size, or `world`.
[[nodiscard]] std::uint32_t data_parallel_world(const DataParallelGroups& groups,
                                                std::uint32_t world) noexcept;

/// A rank's group and its number there. Only for groups that what_is_wrong() accepts.
struct DataParallelPlace {
  std::uint32_t rank = 0;              ///< in its group: the owner of this shard
  std::vector<std::uint32_t> members;  ///< its group's world ranks
  std::vector<std::uint32_t> peers;    ///< world ranks at this place of every group, this one's too
};
[[nodiscard]] DataParallelPlace data_parallel_place(const DataParallelGroups& groups, std::uint32_t world,
                                                    std::uint32_t rank);

/// Ranks and nodes as those of one group count them, where nodes have `ranks_per_node` of all ranks. One
/// node where its nodes hold different numbers of its members.
[[nodiscard]] Topology topology_of_group(const std::vector<std::uint32_t>& members,
                                         std::uint32_t ranks_per_node);

}  // namespace shardscope::plan
