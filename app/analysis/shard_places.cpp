#include "app/analysis/shard_places.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "app/analysis/param_groups.h"
#include "app/analysis/zero_settings.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/shard_layout.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::analysis {

std::vector<ShardPlace> shard_locations(const instrumentation::RunTables& tables) {
  if (tables.stage != 3 || !names_zero_settings(tables.config_json)) return {};
  const plan::ZeroConfig zero = zero_of(tables);
  std::vector<std::int64_t> elems;
  std::vector<bool> trainable;
  for (const instrumentation::ParamInfo& info : tables.params) {
    elems.push_back(info.elems);
    trainable.push_back(!info.frozen);
  }
  const auto element = static_cast<std::int64_t>(tables.param_bytes);
  if (element < 1) return {};
  try {
    const std::uint32_t ranks = plan::shard_world(zero, copy_size(tables));
    const plan::ShardLayout layout = plan::make_shard_layout(
        elems, trainable, ranks, std::max<std::int64_t>(plan::kShardAlignmentBytes / element, 1),
        groups_of_params(tables));
    const std::vector<bool> persistent =
        plan::persistent_params(elems, zero.param_persistence_threshold, zero.model_persistence_threshold);
    const auto places = plan::place_shards(layout, zero, static_cast<std::size_t>(element), persistent);
    const auto int8 = plan::quantized_shards(elems, trainable, zero, ranks, element);
    std::vector<ShardPlace> out(elems.size());
    for (std::size_t param = 0; param < out.size(); ++param) {
      ShardPlace& one = out[param];
      one.place = places.at(param);
      one.pinned = one.place == plan::ShardPlace::host && zero.offload_param.pin_memory;
      one.int8 = int8.at(param);
    }
    return out;
  } catch (const std::invalid_argument&) {
    return {};
  }
}

std::optional<ShardPlace> shard_location(const instrumentation::RunTables& tables, std::uint32_t param) {
  const std::vector<ShardPlace> all = shard_locations(tables);
  return param < all.size() ? std::optional(all[param]) : std::nullopt;
}

std::optional<OptimizerPlace> optimizer_place(const instrumentation::RunTables& tables) {
  if (!names_zero_settings(tables.config_json)) return std::nullopt;
  const plan::ZeroConfig zero = zero_of(tables);
  const plan::OffloadOptimizerConfig& offload = zero.offload_optimizer;
  OptimizerPlace out;
  if (tables.stage < 1 || offload.device == plan::OffloadDevice::none) return out;
  out.place = offload.device == plan::OffloadDevice::nvme ? plan::ShardPlace::nvme : plan::ShardPlace::host;
  out.pinned = out.place == plan::ShardPlace::host && offload.pin_memory;
  if (tables.stage == 3) out.share = offload.ratio;
  return out;
}

}  // namespace shardscope::analysis
