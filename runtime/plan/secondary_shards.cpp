#include "runtime/plan/secondary_shards.h"

#include <algorithm>
#include <utility>

#include "runtime/plan/partition.h"

namespace shardscope::plan {

SecondaryShards::SecondaryShards(std::vector<bool> trainable, const ZeroConfig& zero)
    : enabled_(zero.stage == 3 && zero.hpz_partition_size > 1),
      in_forward_(zero.compat.hpz_secondary_in_forward),
      by_pass_(zero.compat.hpz_prefetch_by_pass),
      trainable_(std::move(trainable)),
      exists_(trainable_.size(), false),
      forward_done_(trainable_.size(), false) {}

void SecondaryShards::begin_iteration(ModelMode mode) {
  mode_ = mode;
  direction_ = Direction::forward;
  std::fill(forward_done_.begin(), forward_done_.end(), false);
}

/// Called for each parameter when its gather is issued, so the pass that issues a prefetch decides its
/// source.
GatherSource SecondaryShards::source(ParamId param) const {
  const std::size_t i = raw(param);
  const bool now =
      in_forward_ || !trainable_[i] || direction_ == Direction::backward || (forward_done_[i] && !by_pass_);
  return exists_[i] && now ? GatherSource::secondary : GatherSource::primary;
}

bool SecondaryShards::released(ParamId param) {
  if (!enabled_ || mode_ == ModelMode::evaluation) return false;
  const std::size_t i = raw(param);
  if (direction_ == Direction::forward) forward_done_[i] = true;
  // A copy made in the backward would have no reader, unless later forwards may read it.
  const bool useful = in_forward_ || direction_ == Direction::forward;
  if (exists_[i] || !useful) return false;
  exists_[i] = true;
  return true;
}

std::vector<ParamId> SecondaryShards::weights_change(WeightChange change) {
  std::vector<ParamId> ended;
  for (std::size_t i = 0; i < exists_.size(); ++i) {
    const bool changed = change == WeightChange::all || (change == WeightChange::trainable && trainable_[i]);
    if (!exists_[i] || !changed) continue;
    ended.push_back(ParamId{static_cast<std::uint32_t>(i)});
    exists_[i] = false;
  }
  return ended;
}

/// [shard_elems * world] padded elements over `group` ranks; the padding of `world` shards divides by every
/// group size, since groups divide the world.
std::int64_t secondary_elems(std::int64_t param_elems, std::uint32_t world, std::uint32_t group) {
  return partition_param(param_elems, world).shard_elems * static_cast<std::int64_t>(world) /
         static_cast<std::int64_t>(group);
}

PackedShard packed_secondary(std::int64_t param_elems, std::uint32_t world, std::uint32_t group) {
  return packed_shard(partition_param(param_elems, world).shard_elems, world / group);
}

}  // namespace shardscope::plan
