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

/// Input of a layout.
struct ParamSizes {
  std::vector<std::int64_t> elems;           ///< by ParamId
  std::vector<std::vector<ParamId>> groups;  ///< by parameter group: its trainable parameters, ascending

  void add(std::uint32_t group, ParamId param) {
    // Group ids may arrive in any order; a group without trainable parameters stays empty.
    if (group >= groups.size()) groups.resize(group + std::size_t{1});
    groups[group].push_back(param);
  }
};

/// From sizes: the caller has left out frozen parameters.
ParamSizes sizes_of(const std::vector<std::int64_t>& param_elems, const std::vector<std::uint32_t>& groups) {
  ParamSizes sizes{param_elems, {}};
  for (std::size_t i = 0; i < param_elems.size(); ++i) {
    sizes.add(groups.empty() ? 0 : groups.at(i), ParamId{static_cast<std::uint32_t>(i)});
  }
  return sizes;
}

/// From a model: `elems` has every parameter, indexed by ParamId, the groups only the trained ones.
ParamSizes sizes_of(const ModelPlan& model) {
  ParamSizes sizes;
  for (const ParamPlan& param : model.params) {
    sizes.elems.push_back(param.elems);
    if (param.trainable) sizes.add(param.group, param.id);
  }
  return sizes;
}

/// The parameters of one group in the order of the flat buffer.
std::vector<ParamId> ordered(const std::vector<ParamId>& group, std::uint32_t world, GradientOrder order) {
  if (order == GradientOrder::parameter_order) return group;
  // S6: parameter i of the group goes to bucket i % world; the buckets are concatenated.
  std::vector<ParamId> dealt;
  dealt.reserve(group.size());
  for (std::size_t bucket = 0; bucket < world; ++bucket) {
    for (std::size_t i = bucket; i < group.size(); i += world) dealt.push_back(group[i]);
  }
  return dealt;
}

/// How the flat buffer of a group is divided.
struct Cut {
  std::int64_t intervals = 1;
  std::int64_t sub_partition_elems = 0;  ///< per rank and interval
};

/// Appends the intervals of a group and assigns every sub-partition to its rank.
// A group begins at the same multiple of the world in the flat buffer as in each owned range: flat_elems is
// shard_elems * world after every group, which sub_partition_begin() relies on.
void append_group(FlatLayout& layout, std::uint32_t group, const std::vector<ParamId>& params, Cut cut) {
  const std::int64_t begin = layout.flat_elems;
  const std::int64_t owned = layout.shard_elems;
  // Elements of an interval, over all ranks.
  const std::int64_t across = cut.sub_partition_elems * layout.world;
  std::int64_t at = 0;  // within the group
  for (const ParamId param : params) {
    layout.order.push_back(param);
    layout.param_offset[raw(param)] = begin + at;
    const std::int64_t first = at;
    const std::int64_t end = at + layout.param_elems[raw(param)];
    while (at < end) {
      // Index of the sub-partition within the group. Sub-partition i belongs to rank i % world (S1, S3) and
      // to interval i / world.
      const std::int64_t index = at / cut.sub_partition_elems;
      const std::int64_t stop = std::min(end, (index + 1) * cut.sub_partition_elems);
      FlatSlice slice;
      slice.param = param;
      slice.rank = static_cast<std::uint32_t>(index % layout.world);
      slice.param_offset = at - first;
      // The sub-partitions of one rank are contiguous in its owned range, but not in the flat buffer.
      slice.shard_offset =
          owned + index / layout.world * cut.sub_partition_elems + at % cut.sub_partition_elems;
      slice.elems = stop - at;
      layout.slices.push_back(slice);
      at = stop;
    }
  }
  for (std::int64_t i = 0; i < cut.intervals; ++i) {
    const std::int64_t first = owned + i * cut.sub_partition_elems;
    // `at` is the end of the last real element: intervals after it are padding only, those before it are full
    // (S5).
    layout.intervals.push_back({{first, first + cut.sub_partition_elems},
                                group,
                                std::clamp<std::int64_t>(at - i * across, 0, across)});
  }
  layout.elems += at;
  layout.shard_elems += cut.intervals * cut.sub_partition_elems;
  layout.flat_elems = layout.shard_elems * layout.world;
}

/// `cut_of(elems)` returns how a group of `elems` elements is divided.
template <typename CutOf>
FlatLayout make_layout(const ParamSizes& sizes, std::uint32_t world, GradientOrder order,
                       const CutOf& cut_of) {
  check_world(world);
  FlatLayout layout;
  layout.world = world;
  layout.param_elems = sizes.elems;
  // Frozen parameters keep 0 here: they are in no layout, and `order` does not name them.
  layout.param_offset.assign(sizes.elems.size(), 0);
  for (std::uint32_t group = 0; group < sizes.groups.size(); ++group) {
    const std::vector<ParamId> params = ordered(sizes.groups[group], world, order);
    std::int64_t elems = 0;
    for (const ParamId param : params) elems += sizes.elems[raw(param)];
    append_group(layout, group, params, cut_of(elems));
  }
  // `intervals` is never empty: its first entry marks the begin of a rank's owned range.
  if (layout.intervals.empty()) layout.intervals.emplace_back();
  return layout;
}

// S2: up to a multiple of 2 * world, so that each of the equal ranges begins at a 4-byte boundary in 16 bits.
// Rounding the range instead of the whole gives the same result.
FlatLayout flat_layout(const ParamSizes& sizes, std::uint32_t world, GradientOrder order) {
  return make_layout(sizes, world, order, [world](std::int64_t elems) {
    return Cut{1, ceil_div(elems, kFlatAlignment * world) * kFlatAlignment};
  });
}

FlatLayout legacy_layout(const ParamSizes& sizes, std::uint32_t world, std::int64_t max_elems_per_comm,
                         GradientOrder order) {
  check_world(world);
  if (max_elems_per_comm < static_cast<std::int64_t>(world)) {
    throw std::invalid_argument("max_elements_per_comm is " + std::to_string(max_elems_per_comm) +
                                "; each of the " + std::to_string(world) +
                                " ranks needs at least one element of every communication");
  }
  return make_layout(sizes, world, order, [world, max_elems_per_comm](std::int64_t elems) {
    const std::int64_t whole = ceil_div(elems, world);  // per rank, if one communication carried all
    // At least 1: best_elems_per_comm() never returns less than the limit, which is at least one element per
    // rank.
    const std::int64_t each = best_elems_per_comm(elems, max_elems_per_comm, world) / world;
    // The second case has at least two communications. All sub-partitions have the same length, so the last
    // ones may be padding.
    return whole <= each ? Cut{1, whole} : Cut{ceil_div(whole, each), each};
  });
}

}  // namespace

// Disjoint ranges give an empty range, never one of negative size.
Range intersect(Range a, Range b) noexcept {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.end > both.begin ? both : Range{both.begin, both.begin};
}

// Ranks after the last element get an empty range at the end. ceil() can leave several of them: 9 elements on
// 8 ranks are 5 shards of at most 2 (P4).
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
  // A frozen parameter has offset 0 and no slice: the search finds the first slice, which belongs to another
  // parameter.
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
  for (const FlatInterval& interval : intervals) {
    // Offset of this rank's sub-partition within the interval.
    const std::int64_t begin = interval.owned.size() * static_cast<std::int64_t>(rank);
    real += intersect({begin, begin + interval.owned.size()}, {0, interval.real_elems}).size();
  }
  return shard_elems - real;
}

std::int64_t FlatLayout::flat_begin(Range owned, std::uint32_t rank) const noexcept {
  // From the second interval on: the first begins at 0, so `after` is never intervals.begin() and the index
  // below never -1.
  const auto after = std::upper_bound(
      intervals.begin() + 1, intervals.end(), owned.begin,
      [](std::int64_t elem, const FlatInterval& interval) { return elem < interval.owned.begin; });
  const auto interval = static_cast<std::size_t>(after - intervals.begin()) - 1;
  return sub_partition_begin(interval, rank) + owned.begin - intervals[interval].owned.begin;
}

// Intervals of a group are adjacent; a group in pieces has at least two.
bool FlatLayout::groups_in_pieces() const noexcept {
  return std::adjacent_find(intervals.begin(), intervals.end(),
                            [](const FlatInterval& a, const FlatInterval& b) {
                              return a.group == b.group;
                            }) != intervals.end();
}

FlatLayout make_flat_layout(const ModelPlan& model, std::uint32_t world, GradientOrder order) {
  return flat_layout(sizes_of(model), world, order);
}

FlatLayout make_flat_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                            GradientOrder order, const std::vector<std::uint32_t>& groups) {
  return flat_layout(sizes_of(param_elems, groups), world, order);
}

// S1, with k = `fewer`, pad_max = `padding` and pad_min = `more_elems`.
std::int64_t best_elems_per_comm(std::int64_t elems, std::int64_t limit, std::uint32_t world) {
  const std::int64_t fewer = elems / limit;  // communications, with more elements in each
  // Less than one communication: a larger one would only add padding.
  if (fewer == 0) return limit;
  const std::int64_t padding = limit * ceil_div(elems, limit) - elems;
  const std::int64_t more_elems = ceil_div(elems, world * fewer);
  return padding > more_elems ? limit + more_elems : limit;
}

FlatLayout make_legacy_layout(const std::vector<std::int64_t>& param_elems, std::uint32_t world,
                              std::int64_t max_elems_per_comm, GradientOrder order,
                              const std::vector<std::uint32_t>& groups) {
  return legacy_layout(sizes_of(param_elems, groups), world, max_elems_per_comm, order);
}

FlatLayout make_legacy_layout(const ModelPlan& model, std::uint32_t world, std::int64_t max_elems_per_comm,
                              GradientOrder order) {
  return legacy_layout(sizes_of(model), world, max_elems_per_comm, order);
}

}  // namespace shardscope::plan
