#include "runtime/plan/zero_groups.h"

#include <stdexcept>
#include <string>

namespace shardscope::plan {
namespace {

void check_divides(const char* key, std::int64_t size, std::uint32_t world) {
  if (size >= 1 && size <= world && world % size == 0) return;
  throw std::invalid_argument(std::string(key) + " is " + std::to_string(size) +
                              ", which does not divide the " + std::to_string(world) +
                              " ranks of the run; every group must be of one size");
}

/// The block of `size` neighbours around `rank`.
std::vector<std::uint32_t> block(std::uint32_t rank, std::uint32_t size) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < size; ++i) members.push_back(rank / size * size + i);
  return members;
}

/// Every stride-th rank of [begin, end), through `rank`.
std::vector<std::uint32_t> across(std::uint32_t rank, std::uint32_t begin, std::uint32_t end,
                                  std::uint32_t stride) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t r = begin + (rank - begin) % stride; r < end; r += stride) members.push_back(r);
  return members;
}

}  // namespace

std::uint32_t shard_world(const ZeroConfig& zero, std::uint32_t world) {
  if (zero.stage != 3 || zero.mics_shard_size < 1) return world;
  check_divides("mics_shard_size", zero.mics_shard_size, world);
  return static_cast<std::uint32_t>(zero.mics_shard_size);
}

bool quantizes_gradients(const ZeroConfig& zero, const Topology& topology) noexcept {
  return zero.stage == 3 && zero.quantized_gradients && zero.reduce_scatter && topology.nodes() > 1;
}

bool gathers_hierarchically(const ZeroConfig& zero, const Topology& topology) noexcept {
  return zero.stage == 3 && zero.mics_hierarchical_params_gather &&
         zero.mics_shard_size > static_cast<std::int64_t>(topology.ranks_per_node);
}

ZeroGroups make_zero_groups(const ZeroConfig& zero, const Topology& topology, std::uint32_t rank) {
  ZeroGroups groups;
  if (zero.stage != 3) return groups;
  const std::uint32_t world = topology.world;
  const std::uint32_t node = topology.ranks_per_node;
  if (zero.hpz_partition_size > 1) {
    check_divides("zero_hpz_partition_size", zero.hpz_partition_size, world);
    groups.secondary = block(rank, static_cast<std::uint32_t>(zero.hpz_partition_size));
  }
  if (zero.mics_shard_size > 0) {
    const std::uint32_t size = shard_world(zero, world);
    groups.shard = block(rank, size);
    groups.replica = across(rank, 0, world, size);
    if (gathers_hierarchically(zero, topology)) {
      if (size % node != 0) {
        throw std::invalid_argument("mics_hierarchical_params_gather: mics_shard_size is " +
                                    std::to_string(size) + ", which is no multiple of the " +
                                    std::to_string(node) + " ranks of a node");
      }
      groups.shard_intra = block(rank, node);
      groups.shard_inter = across(rank, groups.shard.front(), groups.shard.back() + 1, node);
    }
  }
  if (quantizes_gradients(zero, topology)) {
    groups.intra_node = block(rank, node);
    groups.inter_node = across(rank, 0, world, node);
  }
  return groups;
}

}  // namespace shardscope::plan
