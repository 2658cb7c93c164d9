// Process groups of ZeRO++ and MiCS (docs/zero.md P16, P17, P19). Ranks are numbered node by node: node k
// holds the ranks [k * ranks_per_node, (k + 1) * ranks_per_node).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

struct Topology {
  std::uint32_t world = 1;
  std::uint32_t ranks_per_node = 1;
  [[nodiscard]] std::uint32_t nodes() const noexcept { return world / ranks_per_node; }
};

/// The groups of one rank, each ascending; empty where the configuration does not need it.
struct ZeroGroups {
  std::vector<std::uint32_t> secondary;  ///< hpZ: neighbours that hold one secondary copy together
  std::vector<std::uint32_t> shard;      ///< MiCS: neighbours that hold one copy of the model together
  std::vector<std::uint32_t> replica;    ///< MiCS: the ranks with this rank's shard, one of each shard group
  std::vector<std::uint32_t> shard_intra;  ///< MiCS, hierarchical gather: members of `shard` on this node
  std::vector<std::uint32_t>
      shard_inter;  ///< MiCS, hierarchical gather: members with this rank's local rank on all nodes
  std::vector<std::uint32_t> intra_node;  ///< qgZ: the ranks of this node
  std::vector<std::uint32_t> inter_node;  ///< qgZ: the ranks with this rank's local rank on all nodes
};

/// Throws std::invalid_argument, naming the key, when a size does not divide the world or a shard group does
/// not fit the nodes.
[[nodiscard]] ZeroGroups make_zero_groups(const ZeroConfig& zero, const Topology& topology,
                                          std::uint32_t rank);

/// Ranks over which each parameter is sharded: mics_shard_size, or all of them.
[[nodiscard]] std::uint32_t shard_world(const ZeroConfig& zero, std::uint32_t world);

/// Whether any gradient may take the quantized path: stage 3 with zero_quantized_gradients and
/// reduce_scatter, on several nodes.
[[nodiscard]] bool quantizes_gradients(const ZeroConfig& zero, const Topology& topology) noexcept;
/// Whether MiCS gathers across nodes and then inside them: the shard group spans several nodes.
[[nodiscard]] bool gathers_hierarchically(const ZeroConfig& zero, const Topology& topology) noexcept;

}  // namespace shardscope::plan
