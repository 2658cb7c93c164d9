#include "runtime/plan/shard_layout.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/plan/rounding.h"

namespace shardscope::plan {

ShardLayout make_shard_layout(const ModelPlan& model, std::uint32_t world, std::int64_t alignment) {
  std::vector<std::int64_t> elems;
  std::vector<bool> trainable;
  for (const ParamPlan& param : model.params) {
    elems.push_back(param.elems);
    trainable.push_back(param.trainable);
  }
  return make_shard_layout(elems, trainable, world, alignment, groups_of_params(model));
}

ShardLayout make_shard_layout(const std::vector<std::int64_t>& param_elems,
                              const std::vector<bool>& trainable, std::uint32_t world, std::int64_t alignment,
                              const std::vector<std::uint32_t>& groups) {
  if (alignment < 1) {
    throw std::invalid_argument("shard alignment is " + std::to_string(alignment) +
                                "; it must be at least 1");
  }
  ShardLayout layout;
  layout.world = world;
  layout.shard_offset.resize(param_elems.size());
  layout.group = groups;
  layout.group.resize(param_elems.size(), 0);
  std::int64_t all = 0;
  for (const std::int64_t elems : param_elems) {
    layout.partitions.push_back(partition_param(elems, world));
    all += elems;
  }
  for (const bool trained : {true, false}) {
    std::vector<ParamId> params;
    for (std::uint32_t param = 0; param < param_elems.size(); ++param) {
      if (trainable.at(param) == trained) params.push_back(ParamId{param});
    }
    if (trained) {
      std::stable_sort(params.begin(), params.end(), [&layout](ParamId a, ParamId b) {
        return layout.group[raw(a)] < layout.group[raw(b)];
      });
    }
    for (const ParamId param : params) {
      layout.order.push_back(param);
      layout.shard_offset[raw(param)] = layout.elems;
      layout.elems += round_up(layout.partitions[raw(param)].shard_elems, alignment);
    }
    if (trained) layout.trainable_elems = layout.elems;
  }
  layout.padding_elems = layout.elems * static_cast<std::int64_t>(world) - all;
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
    const bool group_goes_on = !last && end < layout.trainable_elems &&
                               layout.group[raw(layout.order[i])] == layout.group[raw(layout.order[i + 1])];
    if (gathered < sub_group_elems && group_goes_on) continue;
    groups.push_back({begin, end});
    begin = end;
    gathered = 0;
  }
  return groups;
}

}  // namespace shardscope::plan
