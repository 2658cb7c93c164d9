// What ZeRO++ quantizes and in which groups (docs/zero.md P18, P19): each group of elements shares one
// scale, the largest magnitude divided by the largest integer (127 for int8, 7 for int4).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {

/// Consecutive groups of `group_elems`; the last may be shorter.
struct QuantGroups {
  std::int64_t elems = 0;
  std::int64_t group_elems = 0;
  std::int64_t groups = 0;
};

/// qwZ (int8): the groups of one rank's shard. DeepSpeed's rule where it finds groups (CUDAQuantizer: from
/// ceil(elems / 8000) up, the first that divides into groups of a multiple of 8, below 16000 elements each);
/// where DeepSpeed rejects the size, groups of at most 8000 with a short last one.
[[nodiscard]] QuantGroups weight_groups(std::int64_t shard_elems);
/// Whether the gathers of a parameter over `ranks` are quantized: not those of persistent parameters, which
/// are gathered once a step, and not among one rank.
enum class Persistence : std::uint8_t { released, persistent };
[[nodiscard]] bool quantizes_weight(const ZeroConfig& zero, std::uint32_t ranks,
                                    Persistence persistence) noexcept;

/// zero_quantized_nontrainable_weights (C11a), of a frozen parameter: whether its shard, `shard_bytes` in the
/// storage type, is stored and communicated as int8 with its scales (weight_groups). As in DeepSpeed not for
/// a persistent parameter, which is small and gathered once in a run, nor for a shard on NVMe.
[[nodiscard]] bool stored_quantized(const ZeroConfig& zero, Persistence persistence,
                                    std::int64_t shard_bytes) noexcept;
/// By ParamId; all false where the key is off. `elems` of the whole parameters, `ranks` that share them.
[[nodiscard]] std::vector<bool> quantized_shards(const std::vector<std::int64_t>& elems,
                                                 const std::vector<bool>& trainable, const ZeroConfig& zero,
                                                 std::uint32_t ranks, std::int64_t element_bytes);

/// hpZ, by ParamId: whether the secondary copy is int8: where the shard is, and with the switch
/// hpz_quantized_copies those of trained parameters that zero_quantized_weights rounds, in the groups of
/// their shards, so that a copy has the gathered values in 16 bits. Arguments as above.
[[nodiscard]] std::vector<bool> quantized_copies(const std::vector<std::int64_t>& elems,
                                                 const std::vector<bool>& trainable, const ZeroConfig& zero,
                                                 std::uint32_t ranks, std::int64_t element_bytes);

/// A shard stored as int8, or several adjacent ones of a parameter, as one block of bytes: the values
/// [elems()] first, then the fp32 scales [scales()] at the next multiple of 16 bytes. Each shard has its own
/// groups, the last of which may be short.
struct PackedShard {
  QuantGroups groups;  ///< of one shard
  std::int64_t shards = 1;
  [[nodiscard]] std::int64_t elems() const noexcept { return groups.elems * shards; }
  [[nodiscard]] std::int64_t scales() const noexcept { return groups.groups * shards; }
  [[nodiscard]] std::int64_t scales_at() const noexcept { return (elems() + 15) / 16 * 16; }
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return scales_at() + scales() * static_cast<std::int64_t>(sizeof(float));
  }
};
[[nodiscard]] inline PackedShard packed_shard(std::int64_t shard_elems, std::int64_t shards = 1) {
  return {weight_groups(shard_elems), shards};
}

/// How one gradient is reduced to its owners.
enum class GradientPath : std::uint8_t {
  reduce_scatter,
  quantized,  ///< qgZ: int4 inside the node, reduced, int4 across nodes
};
/// P19: two dimensions, elements a multiple of 2 * world, several nodes.
[[nodiscard]] GradientPath gradient_path(const ZeroConfig& zero, const Topology& topology,
                                         const std::vector<std::int64_t>& shape);
/// qgZ (int4): the groups of one rank's slice (elems / world) of a gradient of this shape. DeepSpeed makes
/// max(rows, columns, world) groups of the whole; here the same number, rounded to whole bytes and to slices,
/// so that no group is cut by the exchange. The same groups serve both hops.
[[nodiscard]] QuantGroups gradient_groups(const std::vector<std::int64_t>& shape, std::uint32_t world);

/// The owners' slices of a gradient in the order in which the first hop sends them: position p holds the
/// slice of rank order[p]; all slices for one rank of the node are contiguous (ZeRO++: swizzle).
[[nodiscard]] std::vector<std::uint32_t> swizzle(const Topology& topology);

}  // namespace shardscope::plan
