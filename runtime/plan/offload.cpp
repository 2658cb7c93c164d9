#include "runtime/plan/offload.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace shardscope::plan {
namespace {

/// Master weights, momentum and variance.
constexpr std::int64_t kStateTensors = 3;

// Sub-groups before `first` stay on the device and need no buffers.
std::int64_t largest(const std::vector<Range>& groups, std::uint32_t first) noexcept {
  std::int64_t elems = 0;
  for (std::size_t i = first; i < groups.size(); ++i) elems = std::max(elems, groups[i].size());
  return elems;
}

}  // namespace

const char* to_string(ShardPlace place) noexcept {
  switch (place) {
    case ShardPlace::device:
      return "device";
    case ShardPlace::host:
      return "host";
    case ShardPlace::nvme:
      return "nvme";
  }
  return "unknown";
}

std::vector<bool> persistent_params(const std::vector<std::int64_t>& param_elems,
                                    std::int64_t param_threshold, std::int64_t model_threshold) {
  std::vector<bool> persistent;
  persistent.reserve(param_elems.size());
  std::int64_t total = 0;
  for (const std::int64_t elems : param_elems) {
    // P7. Not total + elems <= threshold: an unlimited threshold is the largest int64, and the sum would
    // overflow. `total` never exceeds the threshold, so the difference does not overflow.
    const bool stays = elems <= model_threshold - total && elems <= param_threshold;
    // A parameter that does not fit is skipped: a smaller one after it may still fit.
    if (stays) total += elems;
    persistent.push_back(stays);
  }
  return persistent;
}

// P6: 1 MiB, or one block of the asynchronous transfers where that is larger.
bool rests_on_nvme(const ZeroConfig& zero, std::int64_t shard_bytes) noexcept {
  return zero.offload_param.device == OffloadDevice::nvme &&
         shard_bytes >= std::max(kMinSwapBytes, zero.aio.block_size);
}

std::vector<ShardPlace> place_shards(const ShardLayout& layout, const ZeroConfig& zero,
                                     std::size_t element_bytes, const std::vector<bool>& persistent) {
  const OffloadDevice device = zero.offload_param.device;
  std::vector<ShardPlace> places;
  places.reserve(layout.partitions.size());
  for (std::size_t param = 0; param < layout.partitions.size(); ++param) {
    // With the padding of the last shard, so that all ranks decide alike.
    const std::int64_t bytes =
        layout.partitions[param].shard_elems * static_cast<std::int64_t>(element_bytes);
    // P6, in this order: size is checked first, so a persistent parameter with a large shard is on NVMe as
    // well.
    if (rests_on_nvme(zero, bytes)) {
      places.push_back(ShardPlace::nvme);
    } else if (device == OffloadDevice::none || persistent.at(param)) {
      places.push_back(ShardPlace::device);
    } else {
      places.push_back(ShardPlace::host);
    }
  }
  return places;
}

std::uint32_t first_offloaded_group(const OffloadOptimizerConfig& offload, std::size_t groups) noexcept {
  // One past the last: the CPU updates no sub-group.
  if (offload.device == OffloadDevice::none) return static_cast<std::uint32_t>(groups);
  // Truncated (P8), so the CPU gets the fractional sub-group. A ratio of 1 gives 0, all of them.
  return static_cast<std::uint32_t>((1 - offload.ratio) * static_cast<double>(groups));
}

std::int64_t first_offloaded_elem(const OffloadOptimizerConfig& offload,
                                  const std::vector<Range>& sub_groups) noexcept {
  if (sub_groups.empty()) return 0;
  const std::uint32_t first = first_offloaded_group(offload, sub_groups.size());
  // Sub-groups tile the owned range in order, so the offloaded part is one range, from here to the end.
  return first < sub_groups.size() ? sub_groups[first].begin : sub_groups.back().end;
}

std::vector<UpdateTile> make_update_tiles(const std::vector<Range>& sub_groups, std::uint32_t first_group,
                                          std::int64_t max_elems) {
  if (max_elems < 1) {
    throw std::invalid_argument("update tiles of " + std::to_string(max_elems) +
                                " elements; at least 1 is needed");
  }
  std::vector<UpdateTile> tiles;
  for (std::uint32_t group = first_group; group < sub_groups.size(); ++group) {
    // No tile spans two sub-groups: each is updated with the settings of its parameter group.
    const Range& all = sub_groups[group];
    for (std::int64_t begin = all.begin; begin < all.end; begin += max_elems) {
      tiles.push_back({{begin, std::min(all.end, begin + max_elems)}, group});
    }
  }
  return tiles;
}

OptimizerSwap plan_optimizer_swap(const OffloadOptimizerConfig& offload, const std::vector<Range>& sub_groups,
                                  std::uint32_t first_group) noexcept {
  OptimizerSwap swap;
  swap.slots = offload.pipeline_read || offload.pipeline_write ? 2 : 1;
  const std::int64_t group = largest(sub_groups, first_group);
  // Each slot holds a tile of all three states at a time.
  const std::int64_t room = offload.buffer_count * group / (kStateTensors * swap.slots);
  // At least 1, or make_update_tiles() would refuse: with fewer buffers than state tensors and a tiny group
  // `room` is 0.
  swap.tile_elems = std::max<std::int64_t>(1, std::min(group, room));
  return swap;
}

SwapBuffers plan_swap_buffers(const std::vector<ShardPlace>& places, const ShardLayout& layout,
                              const OffloadParamConfig& offload) {
  SwapBuffers buffers;
  std::size_t shards = 0;
  for (std::size_t param = 0; param < places.size(); ++param) {
    if (places[param] != ShardPlace::nvme) continue;
    ++shards;
    buffers.elems = std::max(buffers.elems, layout.partitions[param].shard_elems);
  }
  // No buffers, and the limits below do not apply: buffer_size concerns shards that are swapped.
  if (shards == 0) return buffers;
  const auto check = [&](const char* key, std::int64_t limit) {
    if (buffers.elems <= limit) return;
    throw std::invalid_argument("zero_optimization.offload_param." + std::string(key) + " is " +
                                std::to_string(limit) + " elements, but the largest shard on NVMe has " +
                                std::to_string(buffers.elems) + "; raise it or use more ranks");
  };
  check("buffer_size", offload.buffer_size);
  check("max_in_cpu", offload.max_in_cpu);
  // max_in_cpu / elems is at least 1: the check above rejected a larger shard. Shards on NVMe are not empty
  // (P6), so this does not divide by 0. More buffers than shards would never be used.
  const std::int64_t fitting = std::min(offload.buffer_count, offload.max_in_cpu / buffers.elems);
  buffers.count =
      static_cast<std::uint32_t>(std::min<std::int64_t>(fitting, static_cast<std::int64_t>(shards)));
  return buffers;
}

}  // namespace shardscope::plan
