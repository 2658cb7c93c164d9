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
  layout.partitions.reserve(model.params.size());
  layout.shard_offset.reserve(model.params.size());
  for (const ParamPlan& param : model.params) {
    const ParamPartition partition = partition_param(param.elems, world);
    layout.partitions.push_back(partition);
    layout.shard_offset.push_back(layout.elems);
    layout.elems += (partition.shard_elems + alignment - 1) / alignment * alignment;
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
  for (std::size_t p = 0; p < layout.partitions.size(); ++p) {
    gathered += layout.partitions[p].shard_elems;
    const bool last = p + 1 == layout.partitions.size();
    if (gathered < sub_group_elems && !last) continue;
    const std::int64_t end = last ? layout.elems : layout.shard_offset[p + 1];
    groups.push_back({begin, end});
    begin = end;
    gathered = 0;
  }
  return groups;
}

}  // namespace shardscope::plan
