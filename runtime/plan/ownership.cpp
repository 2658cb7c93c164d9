#include "runtime/plan/ownership.h"

#include <stdexcept>
#include <string>

#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {

Ownership::Ownership(const ModelPlan& model, const ZeroConfig& zero, std::uint32_t world,
                     std::int64_t shard_alignment)
    : stage_(zero.stage), world_(world), shard_world_(plan::shard_world(zero, world)) {
  if (stage_ > 3) {
    throw std::invalid_argument("zero_optimization.stage is " + std::to_string(stage_) +
                                "; it must be 0, 1, 2 or 3");
  }
  if (stage_ == 3) {
    shards_ = make_shard_layout(model, shard_world_, shard_alignment);
    owned_elems_ = shards_.trainable_elems;
    frozen_elems_ = shards_.elems - shards_.trainable_elems;
    sub_groups_ = make_sub_groups(shards_, zero.sub_group_size);
    auto at = shards_.order.begin();
    for (const Range& sub_group : sub_groups_) {
      while (shards_.shard_offset[raw(*at)] < sub_group.begin) ++at;
      param_group_of_.push_back(shards_.group[raw(*at)]);
    }
    return;
  }
  const GradientOrder order =
      stage_ > 0 && zero.round_robin_gradients ? GradientOrder::round_robin : GradientOrder::parameter_order;
  if (uses_legacy_layout(zero)) {
    flat_ = make_legacy_layout(model, world, zero.max_elements_per_comm, order);
  } else {
    flat_ = make_flat_layout(model, stage_ == 0 ? 1 : world, order);
  }
  owned_elems_ = flat_.shard_elems;
  for (const FlatInterval& interval : flat_.intervals) {
    if (!param_group_of_.empty() && param_group_of_.back() == interval.group) {
      sub_groups_.back().end = interval.owned.end;
    } else {
      sub_groups_.push_back(interval.owned);
      param_group_of_.push_back(interval.group);
    }
  }
  for (const ParamPlan& param : model.params) {
    frozen_offset_.push_back(param.trainable ? -1 : frozen_elems_);
    if (!param.trainable) frozen_elems_ += param.elems;
  }
}

std::vector<OwnedSlice> Ownership::slices(ParamId param, std::uint32_t rank) const {
  std::vector<OwnedSlice> found;
  if (stage_ == 3) {
    const ParamPartition& partition = shards_.partitions.at(raw(param));
    const Range range = partition.real_range(rank % shard_world_);
    found.push_back({param, rank, range.begin, shards_.shard_offset[raw(param)], range.size(),
                     partition.shard_elems - range.size()});
    return found;
  }
  if (frozen_offset_.at(raw(param)) >= 0) {
    found.push_back({param, rank, 0, owned_elems_ + frozen_offset_[raw(param)], flat_.elems_of(param), 0});
    return found;
  }
  for (const FlatSlice& slice : flat_.slices_of(param)) {
    if (stage_ > 0 && slice.rank != rank) continue;
    found.push_back({param, rank, slice.param_offset, slice.shard_offset, slice.elems, 0});
  }
  return found;
}

}  // namespace shardscope::plan
