#include "runtime/plan/quantization.h"

#include <algorithm>

#include "runtime/plan/offload.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/rounding.h"

namespace shardscope::plan {
namespace {

constexpr std::int64_t kTargetGroup = 8000;  // deepspeed/runtime/zero/partition_parameters.py, CUDAQuantizer
constexpr std::int64_t kLargestGroup = 16000;  // exclusive

}  // namespace

QuantGroups weight_groups(std::int64_t shard_elems) {
  std::int64_t groups = ceil_div(shard_elems, kTargetGroup);
  if (shard_elems % 8 == 0 && shard_elems > 0) {
    while (groups < shard_elems && shard_elems % (8 * groups) != 0) ++groups;
    while (shard_elems % (16 * groups) == 0 && shard_elems / groups > kTargetGroup) groups *= 2;
    if (groups < shard_elems && shard_elems / groups < kLargestGroup) {
      return {shard_elems, shard_elems / groups, groups};
    }
  }
  const std::int64_t group = std::min(std::max<std::int64_t>(shard_elems, 1), kTargetGroup);
  return {shard_elems, group, ceil_div(shard_elems, group)};
}

bool quantizes_weight(const ZeroConfig& zero, std::uint32_t ranks, Persistence persistence) noexcept {
  return zero.stage == 3 && zero.quantized_weights && ranks > 1 && persistence == Persistence::released;
}

bool stored_quantized(const ZeroConfig& zero, Persistence persistence, std::int64_t shard_bytes) noexcept {
  return zero.stage == 3 && zero.quantized_nontrainable_weights && persistence == Persistence::released &&
         !rests_on_nvme(zero, shard_bytes);
}

std::vector<bool> quantized_shards(const std::vector<std::int64_t>& elems, const std::vector<bool>& trainable,
                                   const ZeroConfig& zero, std::uint32_t ranks, std::int64_t element_bytes) {
  const std::vector<bool> persistent =
      persistent_params(elems, zero.param_persistence_threshold, zero.model_persistence_threshold);
  std::vector<bool> quantized;
  for (std::size_t i = 0; i < elems.size(); ++i) {
    const std::int64_t shard_bytes = partition_param(elems[i], ranks).shard_elems * element_bytes;
    const Persistence persistence = persistent[i] ? Persistence::persistent : Persistence::released;
    quantized.push_back(!trainable.at(i) && stored_quantized(zero, persistence, shard_bytes));
  }
  return quantized;
}

std::vector<bool> quantized_copies(const std::vector<std::int64_t>& elems, const std::vector<bool>& trainable,
                                   const ZeroConfig& zero, std::uint32_t ranks, std::int64_t element_bytes) {
  std::vector<bool> copies = quantized_shards(elems, trainable, zero, ranks, element_bytes);
  if (!zero.compat.hpz_quantized_copies || zero.hpz_partition_size < 2) return copies;
  const std::vector<bool> persistent =
      persistent_params(elems, zero.param_persistence_threshold, zero.model_persistence_threshold);
  for (std::size_t i = 0; i < elems.size(); ++i) {
    const Persistence persistence = persistent[i] ? Persistence::persistent : Persistence::released;
    if (trainable.at(i) && quantizes_weight(zero, ranks, persistence)) copies[i] = true;
  }
  return copies;
}

GradientPath gradient_path(const ZeroConfig& zero, const Topology& topology,
                           const std::vector<std::int64_t>& shape) {
  const bool fits =
      shape.size() == 2 && elems_of_shape(shape) % (2 * static_cast<std::int64_t>(topology.world)) == 0;
  return fits && quantizes_gradients(zero, topology) ? GradientPath::quantized : GradientPath::reduce_scatter;
}

QuantGroups gradient_groups(const std::vector<std::int64_t>& shape, std::uint32_t world) {
  const auto ranks = static_cast<std::int64_t>(world);
  const std::int64_t slice = elems_of_shape(shape) / ranks;
  const std::int64_t wanted = ceil_div(std::max({shape.at(0), shape.at(1), ranks}), ranks);
  const std::int64_t group = ceil_div(ceil_div(slice, wanted), 2) * 2;
  return {slice, group, ceil_div(slice, group)};
}

std::vector<std::uint32_t> swizzle(const Topology& topology) {
  std::vector<std::uint32_t> order;
  order.reserve(topology.world);
  for (std::uint32_t local = 0; local < topology.ranks_per_node; ++local) {
    for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
      order.push_back(node * topology.ranks_per_node + local);
    }
  }
  return order;
}

}  // namespace shardscope::plan
