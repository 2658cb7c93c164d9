// Data-parallel groups: the ranks that train one copy of the model together, if not all. DeepSpeed gets its
// data_parallel_group from a model-parallel unit (mpu). Parameters are partitioned, gathered and reduced
// inside a group (P20). Each group holds its own copy; ranks with the same rank within their groups are
// model-parallel peers and read the same data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {

/// `shardscope.data_parallel_groups`: world ranks, ascending in each; empty: all ranks are one group.
using DataParallelGroups = std::vector<std::vector<std::uint32_t>>;

/// Error message if `world` ranks cannot train in these groups, else empty. Valid: every rank is in exactly
/// one group, and all groups have the same size.
[[nodiscard]] std::string validate(const DataParallelGroups& groups, std::uint32_t world);

/// Ranks that train one copy of the model: a group's size, or `world`.
[[nodiscard]] std::uint32_t data_parallel_world(const DataParallelGroups& groups,
                                                std::uint32_t world) noexcept;

/// A rank's data-parallel group and its rank in it. Only for groups that validate() accepts.
struct DataParallelPlace {
  std::uint32_t rank = 0;              ///< within its group; decides which shard it owns
  std::vector<std::uint32_t> members;  ///< its group's world ranks
  std::vector<std::uint32_t> peers;    ///< world ranks with the same rank in their groups, this one included
};
[[nodiscard]] DataParallelPlace data_parallel_place(const DataParallelGroups& groups, std::uint32_t world,
                                                    std::uint32_t rank);

/// Topology of one group, where each node has `ranks_per_node` world ranks. A single node if the nodes hold
/// different numbers of the group's members.
[[nodiscard]] Topology topology_of_group(const std::vector<std::uint32_t>& members,
                                         std::uint32_t ranks_per_node);

}  // namespace shardscope::plan
