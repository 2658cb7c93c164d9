#include "runtime/plan/shard_layout.h"

#include <stdexcept>
#include <string>

namespace shardscope::plan {

ShardLayout make_shard_layout(const ModelPlan& model, std::uint32_t world, std::int64_t alignment) {
  if (alignment < 1) {
    throw std::invalid_argument("shard alignment is " + std::to_string(alignment) +
                                "; it must be at least 1");
  }
  ShardLayout layout;
  layout.world = world;
  layout.shard_offset.resize(model.params.size());
  for (const ParamPlan& param : model.params)
    layout.partitions.push_back(partition_param(param.elems, world));
  for (const bool trainable : {true, false}) {
    for (const ParamPlan& param : model.params) {
      if (param.trainable != trainable) continue;
      layout.order.push_back(param.id);
      layout.shard_offset[raw(param.id)] = layout.elems;
      const std::int64_t shard = layout.partitions[raw(param.id)].shard_elems;
      layout.elems += (shard + alignment - 1) / alignment * alignment;
    }
    if (trainable) layout.trainable_elems = layout.elems;
  }
  layout.padding_elems = layout.elems * static_cast<std::int64_t>(world) - model.elems;
  return layout;
}

std::vector<Range> make_sub_groups(const ShardLayout& layout, std::int64_t sub_group_elems) {
  if (sub_group_elems < 1) {
    throw std::invalid_argument("sub_group_size is " + std::to_string(sub_group_elems) +
                                "; it must be at least 1 element");
  }
  std::vector<Range> groups;
  std::int64_t begin = 0;
  std::int64_t gathered = 0;
  for (std::size_t i = 0; begin < layout.trainable_elems; ++i) {
    gathered += layout.partitions[raw(layout.order[i])].shard_elems;
    const bool last = i + 1 == layout.order.size();
    const std::int64_t end = last ? layout.elems : layout.shard_offset[raw(layout.order[i + 1])];
    if (gathered < sub_group_elems && end < layout.trainable_elems) continue;
    groups.push_back({begin, end});
    begin = end;
    gathered = 0;
  }
  return groups;
}

}  // namespace shardscope::plan
