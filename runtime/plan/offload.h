// Offload placement: where each shard is kept, which sub-groups the CPU updates, the tiles that an update
// streams through host buffers, and the swap buffers of shards on NVMe (docs/zero.md O1-O4, P6, P8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/partition.h"
#include "runtime/plan/shard_layout.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Where a stage-3 shard is kept between uses.
enum class ShardPlace : std::uint8_t { device, host, nvme };
[[nodiscard]] const char* to_string(ShardPlace place) noexcept;

/// P7, by ParamId: whether a parameter stays gathered. Parameters are taken in order while the total stays
/// within the model's threshold.
[[nodiscard]] std::vector<bool> persistent_params(const std::vector<std::int64_t>& param_elems,
                                                  std::int64_t param_threshold, std::int64_t model_threshold);

/// Shards and states on NVMe occupy whole blocks of direct I/O.
inline constexpr std::int64_t kSwapBlockBytes = 4096;
/// The smallest shard worth a file, in bytes.
inline constexpr std::int64_t kMinSwapBytes = std::int64_t{1} << 20;
/// P6: whether a shard of `shard_bytes` is kept on NVMe.
[[nodiscard]] bool rests_on_nvme(const ZeroConfig& zero, std::int64_t shard_bytes) noexcept;
/// P6, by ParamId. `persistent` as above. With offload_param on NVMe: shards of at least
/// max(kMinSwapBytes, aio.block_size) bytes there, then persistent ones on the device, the rest on the host.
[[nodiscard]] std::vector<ShardPlace> place_shards(const ShardLayout& layout, const ZeroConfig& zero,
                                                   std::size_t element_bytes,
                                                   const std::vector<bool>& persistent);

/// P8, Twin-Flow: sub-groups from this one on are updated by the CPU: int((1 - ratio) * groups), as DeepSpeed
/// truncates it. `groups` when nothing is offloaded.
[[nodiscard]] std::uint32_t first_offloaded_group(const OffloadOptimizerConfig& offload,
                                                  std::size_t groups) noexcept;

/// The first element of the owned range whose optimizer states, and so gradients, are offloaded; the end of
/// the range when none are.
[[nodiscard]] std::int64_t first_offloaded_elem(const OffloadOptimizerConfig& offload,
                                                const std::vector<Range>& sub_groups) noexcept;

/// A piece of a sub-group that is in host buffers as a whole.
struct UpdateTile {
  Range range;
  std::uint32_t group = 0;
};
/// Sub-groups from `first_group` on, cut into pieces of at most `max_elems`, ascending. Throws
/// std::invalid_argument when `max_elems` is below 1.
[[nodiscard]] std::vector<UpdateTile> make_update_tiles(const std::vector<Range>& sub_groups,
                                                        std::uint32_t first_group, std::int64_t max_elems);

/// How optimizer states on NVMe pass through host buffers (O4).
struct OptimizerSwap {
  std::int64_t tile_elems = 0;  ///< of one state
  std::uint32_t slots = 1;      ///< tiles in host memory at a time, each with master, momentum, variance
};
/// The pool has DeepSpeed's size: buffer_count buffers of the largest sub-group. One slot without pipelining;
/// with it two, so that the read of the next tile and the write of the last one overlap the update. Tiles
/// shrink where DeepSpeed would run out of buffers.
[[nodiscard]] OptimizerSwap plan_optimizer_swap(const OffloadOptimizerConfig& offload,
                                                const std::vector<Range>& sub_groups,
                                                std::uint32_t first_group) noexcept;

/// Host buffers through which shards on NVMe pass (O1).
struct SwapBuffers {
  std::uint32_t count = 0;
  std::int64_t elems = 0;  ///< of each: the largest shard on NVMe
};
/// At most buffer_count, and together at most max_in_cpu elements. Throws std::invalid_argument when the
/// largest shard on NVMe is larger than buffer_size or max_in_cpu.
[[nodiscard]] SwapBuffers plan_swap_buffers(const std::vector<ShardPlace>& places, const ShardLayout& layout,
                                            const OffloadParamConfig& offload);

}  // namespace shardscope::plan
