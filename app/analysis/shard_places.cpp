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
    std::vector<ShardPlace> rests(elems.size());
    for (std::size_t param = 0; param < rests.size(); ++param) {
      ShardPlace& rest = rests[param];
      rest.place = places.at(param);
      rest.pinned = rest.place == plan::ShardPlace::host && zero.offload_param.pin_memory;
      rest.int8 = int8.at(param);
    }
    return rests;
  } catch (const std::invalid_argument&) {
    return {};
  }
}

std::optional<ShardPlace> shard_location(const instrumentation::RunTables& tables, std::uint32_t param) {
  const std::vector<ShardPlace> rests = shard_locations(tables);
  return param < rests.size() ? std::optional(rests[param]) : std::nullopt;
}

}  // namespace shardscope::analysis
