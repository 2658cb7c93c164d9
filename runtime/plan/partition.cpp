#include "runtime/plan/partition.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/plan/rounding.h"

namespace shardscope::plan {
namespace {

void check_world(std::uint32_t world) {
  if (world == 0) throw std::invalid_argument("partition: world is 0; it must be at least 1");
}

/// What a layout is made of.
struct ParamSizes {
  std::vector<std::int64_t> elems;  ///< by ParamId
  std::vector<ParamId> trainable;   ///< ascending
};

ParamSizes sizes_of(const std::vector<std::int64_t>& param_elems) {
  ParamSizes sizes{param_elems, {}};
  for (std::size_t i = 0; i < param_elems.size(); ++i) {
    sizes.trainable.push_back(ParamId{static_cast<std::uint32_t>(i)});
  }
  return sizes;
}

ParamSizes sizes_of(const ModelPlan& model) {
  ParamSizes sizes;
  for (const ParamPlan& param : model.params) {
    sizes.elems.push_back(param.elems);
    if (param.trainable) sizes.trainable.push_back(param.id);
  }
  return sizes;
}

/// Parameters one after the other; sizes and slices come with cut().
FlatLayout concatenate(const ParamSizes& sizes, std::uint32_t world, GradientOrder order) {
  check_world(world);
  FlatLayout layout;
  layout.world = world;
  const std::size_t count = sizes.trainable.size();
  switch (order) {
    case GradientOrder::parameter_order:
      layout.order = sizes.trainable;
      break;
    case GradientOrder::round_robin:
      // S6: parameter i goes to bucket i % world; the buckets follow each other.
      layout.order.reserve(count);
      for (std::size_t bucket = 0; bucket < world; ++bucket) {
        for (std::size_t i = bucket; i < count; i += world) layout.order.push_back(sizes.trainable[i]);
      }
      break;
  }
  layout.param_elems = sizes.elems;
  layout.param_offset.assign(sizes.elems.size(), 0);
  for (const ParamId param : layout.order) {
    layout.param_offset[raw(param)] = layout.elems;
    layout.elems += sizes.elems[raw(param)];
  }
  return layout;
}

/// Gives every sub-partition to its rank.
void cut(FlatLayout& layout, std::int64_t intervals, std::int64_t sub_partition_elems) {
  layout.intervals = intervals;
  layout.sub_partition_elems = sub_partition_elems;
  layout.shard_elems = intervals * sub_partition_elems;
  layout.flat_elems = layout.shard_elems * layout.world;
  for (const ParamId param : layout.order) {
    const std::int64_t first = layout.param_offset[raw(param)];
    const std::int64_t end = first + layout.param_elems[raw(param)];
    for (std::int64_t begin = first; begin < end;) {
      const std::int64_t index = begin / sub_partition_elems;
      const std::int64_t stop = std::min(end, (index + 1) * sub_partition_elems);
      FlatSlice slice;
      slice.param = param;
      slice.rank = static_cast<std::uint32_t>(index % layout.world);
      slice.param_offset = begin - first;
      slice.shard_offset = index / layout.world * sub_partition_elems + begin % sub_partition_elems;
      slice.elems = stop - begin;
      layout.slices.push_back(slice);
      begin = stop;
    }
  }
}

FlatLayout flat_layout(const ParamSizes& sizes, std::uint32_t world, GradientOrder order) {
  FlatLayout layout = concatenate(sizes, world, order);
  cut(layout, 1, ceil_div(layout.elems, kFlatAlignment * world) * kFlatAlignment);
  return layout;
}

FlatLayout legacy_layout(const ParamSizes& sizes, std::uint32_t world, std::int64_t max_elems_per_comm,
                         GradientOrder order) {
  FlatLayout layout = concatenate(sizes, world, order);
  if (max_elems_per_comm < static_cast<std::int64_t>(world)) {
    throw std::invalid_argument("max_elements_per_comm is " + std::to_string(max_elems_per_comm) +
                                "; each of the " + std::to_string(world) +
                                " ranks needs at least one element of every communication");
  }
  const std::int64_t whole = ceil_div(layout.elems, world);  // per rank, if one communication carried all
  const std::int64_t each = best_elems_per_comm(layout.elems, max_elems_per_comm, world) / world;
  if (whole <= each) {
    cut(layout, 1, whole);
  } else {
    cut(layout, ceil_div(whole, each), each);
  }
  return layout;
}

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
                               return param_offset[raw(slice.param)] + slice.param_offset < offset;
                             });
  std::vector<FlatSlice> found;
  for (; at != slices.end() && at->param == param; ++at) found.push_back(*at);
  return found;
}

std::int64_t FlatLayout::padding_of(std::uint32_t rank) const noexcept {
  std::int64_t real = 0;
  for (std::int64_t interval = 0; interval < intervals; ++interval) {
    const std::int64_t begin = sub_partition_begin(interval, rank);
    real += intersect({begin, begin + sub_partition_elems}, {0, elems}).size();
  }
  return shard_elems - real;
}

FlatLayout make_flat_layout(const ModelPlan& model, std::uint32_t world, GradientOrder order) {
  return flat_layout(sizes_of(model), world, order);
}

FlatLayout make_flat_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                            GradientOrder order) {
  return flat_layout(sizes_of(param_elems), world, order);
}

std::int64_t best_elems_per_comm(std::int64_t elems, std::int64_t limit, std::uint32_t world) {
  const std::int64_t fewer = elems / limit;  // communications, with more elements in each
  if (fewer == 0) return limit;
  const std::int64_t padding = limit * ceil_div(elems, limit) - elems;
  const std::int64_t more_elems = ceil_div(elems, world * fewer);
  return padding > more_elems ? limit + more_elems : limit;
}

FlatLayout make_legacy_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                              std::int64_t max_elems_per_comm, GradientOrder order) {
  return legacy_layout(sizes_of(param_elems), world, max_elems_per_comm, order);
}

FlatLayout make_legacy_layout(const ModelPlan& model, std::uint32_t world, std::int64_t max_elems_per_comm,
                              GradientOrder order) {
  return legacy_layout(sizes_of(model), world, max_elems_per_comm, order);
}

}  // namespace shardscope::plan
