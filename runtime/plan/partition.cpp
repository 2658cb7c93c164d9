#include "runtime/plan/partition.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace shardscope::plan {
namespace {

void check_world(std::uint32_t world) {
  if (world == 0) throw std::invalid_argument("partition: world is 0; it must be at least 1");
}

std::int64_t ceil_div(std::int64_t value, std::int64_t by) noexcept { return (value + by - 1) / by; }

}  // namespace

Range intersect(Range a, Range b) noexcept {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.end > both.begin ? both : Range{both.begin, both.begin};
}

Range ParamPartition::real_range(std::uint32_t rank) const noexcept {
  const std::int64_t begin = std::min(elems, shard_elems * static_cast<std::int64_t>(rank));
  return {begin, std::min(elems, begin + shard_elems)};
}

ParamPartition partition_param(std::int64_t elems, std::uint32_t world) {
  check_world(world);
  if (elems < 0) throw std::invalid_argument("partition: " + std::to_string(elems) + " elements; below 0");
  ParamPartition partition;
  partition.elems = elems;
  partition.shard_elems = ceil_div(elems, world);
  partition.padding_elems = partition.shard_elems * world - elems;
  return partition;
}

std::vector<FlatSlice> FlatLayout::slices_of(ParamId param) const {
  // Slices ascend in the flat buffer and those of one parameter are neighbours.
  const std::int64_t begin = param_offset.at(raw(param));
  auto at = std::lower_bound(slices.begin(), slices.end(), begin,
                             [this](const FlatSlice& slice, std::int64_t offset) {
                               return slice.rank * shard_elems + slice.shard_offset < offset;
                             });
  std::vector<FlatSlice> found;
  for (; at != slices.end() && at->param == param; ++at) found.push_back(*at);
  return found;
}

std::int64_t FlatLayout::padding_of(std::uint32_t rank) const noexcept {
  const std::int64_t begin = shard_elems * static_cast<std::int64_t>(rank);
  return shard_elems - intersect({begin, begin + shard_elems}, {0, elems}).size();
}

FlatLayout make_flat_layout(const ModelPlan& model, std::uint32_t world, GradientOrder order) {
  std::vector<std::int64_t> elems;
  elems.reserve(model.params.size());
  for (const ParamPlan& param : model.params) elems.push_back(param.elems);
  return make_flat_layout(elems, world, order);
}

FlatLayout make_flat_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                            GradientOrder order) {
  check_world(world);
  FlatLayout layout;
  layout.world = world;
  const std::size_t count = param_elems.size();
  layout.order.reserve(count);
  switch (order) {
    case GradientOrder::parameter_order:
      for (std::size_t i = 0; i < count; ++i) layout.order.push_back(ParamId{static_cast<std::uint32_t>(i)});
      break;
    case GradientOrder::round_robin:
      // S6: parameter i goes to bucket i % world; the buckets follow each other.
      for (std::size_t bucket = 0; bucket < world; ++bucket) {
        for (std::size_t i = bucket; i < count; i += world) {
          layout.order.push_back(ParamId{static_cast<std::uint32_t>(i)});
        }
      }
      break;
  }
  layout.param_elems = param_elems;
  layout.param_offset.assign(count, 0);
  for (const ParamId param : layout.order) {
    layout.param_offset[raw(param)] = layout.elems;
    layout.elems += param_elems[raw(param)];
  }
  const std::int64_t alignment = kFlatAlignment * world;
  layout.flat_elems = ceil_div(layout.elems, alignment) * alignment;
  layout.shard_elems = layout.flat_elems / world;

  for (const ParamId param : layout.order) {
    std::int64_t begin = layout.param_offset[raw(param)];
    const std::int64_t end = begin + param_elems[raw(param)];
    while (begin < end) {
      const std::int64_t rank = begin / layout.shard_elems;
      const std::int64_t stop = std::min(end, (rank + 1) * layout.shard_elems);
      FlatSlice slice;
      slice.param = param;
      slice.rank = static_cast<std::uint32_t>(rank);
      slice.param_offset = begin - layout.param_offset[raw(param)];
      slice.shard_offset = begin - rank * layout.shard_elems;
      slice.elems = stop - begin;
      layout.slices.push_back(slice);
      begin = stop;
    }
  }
  return layout;
}

}  // namespace shardscope::plan
