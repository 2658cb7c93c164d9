// What ZeRO++ quantizes and in which groups (zero-reference P18, P19): each group of elements shares one
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
/// where DeepSpeed refuses the size, groups of at most 8000 with a short last one.
[[nodiscard]] QuantGroups weight_groups(std::int64_t shard_elems);
/// Whether the gathers of a parameter over `ranks` are quantized: not those of persistent parameters, which
/// are gathered once a step, and not among one rank.
enum class Persistence : std::uint8_t { released, persistent };
[[nodiscard]] bool quantizes_weight(const ZeroConfig& zero, std::uint32_t ranks,
                                    Persistence persistence) noexcept;

/// The way of one gradient to its owners.
enum class GradientPath : std::uint8_t {
  reduce_scatter,
  quantized,  ///< qgZ: int4 inside the node, reduced, int4 across nodes
};
/// P19: two dimensions, elements a multiple of 2 * world, several nodes.
[[nodiscard]] GradientPath gradient_path(const ZeroConfig& zero, const Topology& topology,
                                         const std::vector<std::int64_t>& shape);
/// qgZ (int4): the groups of one rank's slice (elems / world) of a gradient of this shape. DeepSpeed makes
/// max(rows, columns, world) groups of the whole; here as many, rounded to whole bytes and to slices, so that
/// no group is cut by the exchange. The same groups serve both hops.
[[nodiscard]] QuantGroups gradient_groups(const std::vector<std::int64_t>& shape, std::uint32_t world);

/// The owners' slices of a gradient in the order in which the first hop sends them: place p holds the slice
/// of rank order[p]; all slices for one rank of the node follow each other (ZeRO++: swizzle).
[[nodiscard]] std::vector<std::uint32_t> swizzle(const Topology& topology);

}  // namespace shardscope::plan
