#include "app/gui/model/timeline_rows.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "app/analysis/counters.h"
#include "app/gui/model/names.h"
#include "app/store/lane_name.h"

namespace shardscope::gui {
namespace {

/// Lanes of the GPU rows, from top to bottom, after those named by the run.
constexpr std::array kGpuRows{ev::StreamId::extra_1,     ev::StreamId::extra_2,     ev::StreamId::extra_3,
                              ev::StreamId::extra_4,     ev::StreamId::gpu_compute, ev::StreamId::gpu_gather,
                              ev::StreamId::gpu_reduce,  ev::StreamId::gpu_copy,    ev::StreamId::gpu_other_1,
                              ev::StreamId::gpu_other_2, ev::StreamId::gpu_other_3, ev::StreamId::gpu_host};

std::uint8_t visible_depths(const store::Store& store, std::uint32_t rank, ev::StreamId stream,
                            std::uint8_t most) {
  return std::min(store.depth_count({rank, stream}), most);
}

/// Removes hidden ranks, and groups that become empty.
std::vector<RankGroup> filtered(std::vector<RankGroup> groups, const TimelineOptions& options) {
  if (!options.shown) return groups;
  for (RankGroup& group : groups)
    std::erase_if(group.ranks, [&](std::uint32_t rank) { return !options.shown->contains(rank); });
  std::erase_if(groups, [](const RankGroup& group) { return group.ranks.empty(); });
  return groups;
}

std::size_t ranks_shown(const store::Store& store, const TimelineOptions& options) {
  return options.shown ? options.shown->size() : store.ranks().size();
}

/// Lanes of a rank with the maximum number of rows.
struct Lane {
  RowKind kind;
  ev::StreamId stream;
  std::uint8_t most;
};
constexpr std::array kLanes{Lane{RowKind::host, ev::StreamId::host, kLaneDepths},
                            Lane{RowKind::compute, ev::StreamId::compute, kComputeDepths},
                            Lane{RowKind::gather, ev::StreamId::gather, kLaneDepths},
                            Lane{RowKind::reduce, ev::StreamId::reduce, kLaneDepths},
                            Lane{RowKind::copy, ev::StreamId::copy, kLaneDepths},
                            Lane{RowKind::nvme, ev::StreamId::nvme, kLaneDepths},
                            Lane{RowKind::worker, ev::StreamId::worker, kLaneDepths}};

bool hidden(const Lane& lane, const ViewOptions& view) {
  const bool transfers =
      lane.kind == RowKind::copy || lane.kind == RowKind::nvme || lane.kind == RowKind::worker;
  return (lane.kind == RowKind::gather && view.hides(ItemClass::gathers)) ||
         (lane.kind == RowKind::reduce && view.hides(ItemClass::reductions)) ||
         (lane.kind == RowKind::host && view.hides(ItemClass::steps)) ||
         (transfers && view.hides(ItemClass::transfers));
}

std::uint8_t depths_shown(const Lane& lane, const TimelineOptions& options) {
  return lane.kind == RowKind::compute ? options.compute_depths : options.lane_depths;
}

/// Number of a rank's lane rows hidden for lack of room.
std::uint32_t rows_left_out(const store::Store& store, std::uint32_t rank, const TimelineOptions& options) {
  std::uint32_t out = 0;
  for (const Lane& lane : kLanes) {
    if (hidden(lane, options.view)) continue;
    const std::uint8_t all =
        levels_shown(options.crops, {rank, lane.stream}, visible_depths(store, rank, lane.stream, lane.most));
    const std::uint8_t shown = depths_shown(lane, options);
    out += all > shown ? all - shown : 0U;
  }
  return out;
}

/// Omits as few lane rows of `rank` as needed to fit rows of total height `whole`; only this rank is
/// expanded. If impossible, fits the rank's own lanes: other ranks can be scrolled to, and its gathers and
/// reductions matter more than deep modules.
void leave_out_rows(const store::Store& store, TimelineOptions& options, std::uint32_t rank, float whole,
                    float height) {
  struct Step {
    std::uint8_t lane_depths, fewest;
  };
  const auto fits = [&](std::span<const Step> steps, float needed) {
    for (const Step& step : steps) {
      options.lane_depths = step.lane_depths;
      for (options.compute_depths = kComputeDepths;; --options.compute_depths) {
        const auto rows = static_cast<float>(rows_left_out(store, rank, options));
        if (needed - rows * (options.view.lane_height + kLaneGap) <= height) return true;
        if (options.compute_depths == step.fewest) break;
      }
    }
    return false;
  };
  const float each = options.heat ? kHeatHeight + kHeatGap : kRankHeaderHeight + kLaneGap;
  const auto ranks = static_cast<float>(ranks_shown(store, options));
  constexpr std::array kEveryRank{Step{kLaneDepths, 5}, Step{2, 5}, Step{1, 3}};
  if (each * ranks <= height && fits(kEveryRank, whole)) return;
  // If this does not fit either, the smallest layout is used.
  constexpr std::array kOwnLanes{Step{kLaneDepths, 5}, Step{2, 5}, Step{1, 1}};
  fits(kOwnLanes, whole - each * std::max(0.0F, ranks - 1));
}

/// Numbers the first of every kNumbered consecutive heat rows.
void number_heat_rows(std::vector<TimelineRow>& rows) {
  constexpr std::size_t kNumbered = 3;  // rows covered by the height of a number
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i;
    while (end < rows.size() && rows[end].heat) ++end;
    for (; i + kNumbered <= end; i += kNumbered) rows[i].numbered = true;
    i = std::max(end, i + 1);
  }
}

/// Per followed parameter one band for each rank, also in closed groups, since the ranks are
/// compared.
template <typename Add>
void add_bands(const std::vector<RankGroup>& groups, const TimelineOptions& options, const Add& add,
               TimelineRows& out) {
  constexpr std::size_t kFew = 16;
  std::size_t ranks = 0;
  for (const RankGroup& group : groups) ranks += group.ranks.size();
  for (const std::uint32_t param : options.params) {
    add(RowKind::param, ev::kNoId, 0, kLaneHeight, true);
    out.rows.back().param = param;
    for (const RankGroup& group : groups) {
      for (const std::uint32_t rank : group.ranks) {
        add(RowKind::status, rank, 0, ranks <= kFew ? kBandHeight : kLowBandHeight, false);
        out.rows.back().param = param;
      }
    }
  }
}

}  // namespace

// The given groups, or by host if there are several.
std::vector<RankGroup> all_groups(const store::Store& store, const TimelineOptions& options) {
  if (!options.groups.empty()) return options.groups;
  std::vector<RankGroup> out;
  for (const store::RankRow& rank : store.ranks()) {
    // Ranks of a node are usually consecutive.
    auto known = !out.empty() && out.back().title == rank.host
                     ? std::prev(out.end())
                     : std::ranges::find(out, rank.host, &RankGroup::title);
    if (known == out.end()) known = out.insert(known, RankGroup{rank.host, {}});
    known->ranks.push_back(rank.rank);
  }
  if (out.size() > 1) return out;
  RankGroup all;
  for (const store::RankRow& rank : store.ranks()) all.ranks.push_back(rank.rank);
  return {all};
}

std::vector<RankGroup> shown_groups(const store::Store& store, const TimelineOptions& options) {
  return filtered(all_groups(store, options), options);
}

const char* word(RowCounter counter) noexcept {
  switch (counter) {
    case RowCounter::live_elements:
      return "live elements";
    case RowCounter::memory:
      return "memory in use";
    case RowCounter::in_flight:
      return "bytes in flight";
    case RowCounter::outside:
      return "outside memory";
    case RowCounter::loss:
      return "loss";
    case RowCounter::step_time:
      return "step time";
    case RowCounter::throughput:
      return "tokens/s";
    case RowCounter::gradient_norm:
      return "gradient norm";
    case RowCounter::learning_rate:
      return "learning rate";
    case RowCounter::loss_scale:
      return "loss scale";
  }
  return "";
}

void toggle(TimelineOptions& options, RowCounter counter) {
  if (options.counters.erase(counter) == 0) options.counters.insert(counter);
}

void toggle_sampled(TimelineOptions& options, const std::string& name) {
  if (options.sampled.erase(name) == 0) options.sampled.insert(name);
}

bool follows(const TimelineOptions& options, std::uint32_t param) {
  return std::ranges::find(options.params, param) != options.params.end();
}

void follow_param(TimelineOptions& options, std::uint32_t param) {
  if (!follows(options, param)) options.params.push_back(param);
}

void unfollow_param(TimelineOptions& options, std::uint32_t param) { std::erase(options.params, param); }

store::LaneId TimelineRow::lane() const noexcept {
  switch (kind) {
    case RowKind::node:
    case RowKind::rank:
    case RowKind::compute:
    case RowKind::waits:
      return {rank, ev::StreamId::compute};
    case RowKind::host:
      return {rank, ev::StreamId::host};
    case RowKind::gather:
      return {rank, ev::StreamId::gather};
    case RowKind::reduce:
      return {rank, ev::StreamId::reduce};
    case RowKind::copy:
      return {rank, ev::StreamId::copy};
    case RowKind::nvme:
      return {rank, ev::StreamId::nvme};
    case RowKind::worker:
      return {rank, ev::StreamId::worker};
    case RowKind::gpu:
      return {rank, gpu_lane};
    case RowKind::counter:
    case RowKind::param:
    case RowKind::status:
      return {ev::kNoId, ev::StreamId::host};
  }
  return {rank, ev::StreamId::host};
}

const char* TimelineRow::label() const noexcept {
  if (depth != 0) return "";
  if (!given_name.empty()) return given_name.c_str();
  switch (kind) {
    case RowKind::node:
      return "node";
    case RowKind::rank:
      return "rank";
    case RowKind::host:
      return "steps";
    case RowKind::compute:
      return "compute";
    case RowKind::gather:
      return "gather";
    case RowKind::reduce:
      return "reduce";
    case RowKind::waits:
      return "waits";
    case RowKind::copy:
      return "copy";
    case RowKind::nvme:
      return "nvme";
    case RowKind::worker:
      return "worker";
    case RowKind::gpu:
      return word(gpu_lane);
    case RowKind::counter:
      return sampled.empty() ? word(counter) : sampled.c_str();
    case RowKind::param:
      return "parameter";
    case RowKind::status:
      return "status";
  }
  return "";
}

const TimelineRow* TimelineRows::at(float y) const noexcept {
  const auto found = std::partition_point(rows.begin(), rows.end(),
                                          [&](const TimelineRow& row) { return row.y + row.height <= y; });
  return found != rows.end() && found->y <= y ? &*found : nullptr;
}

std::pair<std::size_t, std::size_t> TimelineRows::between(float top, float bottom) const noexcept {
  const auto first = std::partition_point(rows.begin(), rows.end(),
                                          [&](const TimelineRow& row) { return row.y + row.height <= top; });
  const auto last =
      std::partition_point(first, rows.end(), [&](const TimelineRow& row) { return row.y < bottom; });
  return {static_cast<std::size_t>(first - rows.begin()), static_cast<std::size_t>(last - rows.begin())};
}

TimelineRows layout_rows(const store::Store& store, const TimelineOptions& options) {
  TimelineRows out;
  float y = 0;
  const auto add = [&](RowKind kind, std::uint32_t rank, std::uint8_t depth, float height, bool expanded) {
    TimelineRow& row = out.rows.emplace_back(TimelineRow{.kind = kind, .rank = rank, .depth = depth});
    row.y = y;
    row.height = height;
    row.expanded = expanded;
    if (depth == 0 && row.is_lane() && kind != RowKind::rank && kind != RowKind::waits &&
        kind != RowKind::gpu)
      row.given_name = store::given_lane_name(store, row.lane());
    y += height + kLaneGap;
  };
  const auto add_counters = [&](std::uint32_t rank) {
    if (options.view.hides(ItemClass::curves)) return;
    for (const RowCounter counter : options.counters) {
      if (of_all_ranks(counter) != (rank == ev::kNoId)) continue;
      add(RowKind::counter, rank, 0, options.view.curve_height, false);
      out.rows.back().counter = counter;
    }
    if (rank == ev::kNoId || options.sampled.empty() || !analysis::has_counters(store, rank)) return;
    for (const std::string& name : options.sampled) {
      add(RowKind::counter, rank, 0, options.view.curve_height, false);
      out.rows.back().sampled = name;
    }
  };
  const auto add_lanes = [&](std::uint32_t rank, std::size_t header) {
    const float lane = options.view.lane_height;
    for (const Lane& one : kLanes) {
      if (hidden(one, options.view)) continue;
      const std::uint8_t all = visible_depths(store, rank, one.stream, one.most);
      const std::uint8_t chosen = levels_shown(options.crops, {rank, one.stream}, all);
      const std::uint8_t depths = std::min(chosen, depths_shown(one, options));
      for (std::uint8_t d = 0; d < depths; ++d) {
        add(one.kind, rank, d, lane, false);
        if (d == 0) out.rows.back().cropped = static_cast<std::uint8_t>(all - chosen);
      }
      if (one.kind == RowKind::compute && depths != 0 && !options.view.hides(ItemClass::waits))
        add(RowKind::waits, rank, 0, lane, false);
    }
    for (const ev::StreamId stream : kGpuRows) {
      if (options.view.hides(ItemClass::gpu)) continue;
      // Lanes of a GPU's own streams have one row; spans of a program's lanes may be nested.
      const std::uint8_t all = visible_depths(store, rank, stream, kLaneDepths);
      const std::uint8_t depths = levels_shown(options.crops, {rank, stream}, all);
      for (std::uint8_t d = 0; d < depths; ++d) {
        add(RowKind::gpu, rank, d, lane, false);
        out.rows.back().gpu_lane = stream;
        if (d == 0) out.rows.back().cropped = static_cast<std::uint8_t>(all - depths);
        if (d == 0) out.rows.back().given_name = store::given_lane_name(store, {rank, stream});
      }
    }
    out.rows[header].left_out = rows_left_out(store, rank, options);
    y += kRankGap - kLaneGap;
  };
  const std::vector<RankGroup> all = shown_groups(store, options);
  add_counters(ev::kNoId);
  add_bands(all, options, add, out);
  if (!out.rows.empty()) y += kRankGap - kLaneGap;
  for (const RankGroup& group : all) {
    if (!group.title.empty()) {
      const bool open = !options.closed_nodes.contains(group.title);
      add(RowKind::node, ev::kNoId, 0, kLaneHeight, open);
      out.rows.back().given_name = group.title;
      out.rows.back().ranks = group.ranks;
      if (!open) continue;
    }
    for (const std::uint32_t rank : group.ranks) {
      const bool expanded = options.expanded.contains(rank);
      const bool heat = options.heat && !expanded;
      add(RowKind::rank, rank, 0, heat ? kHeatHeight : kRankHeaderHeight, expanded);
      const std::size_t header = out.rows.size() - 1;
      out.rows.back().heat = heat;
      if (heat) y -= kLaneGap - kHeatGap;
      if (!heat) add_counters(rank);
      if (expanded) add_lanes(rank, header);
    }
  }
  number_heat_rows(out.rows);
  out.height = y;
  return out;
}

void resolve_height(const store::Store& store, TimelineOptions& options, float height) {
  constexpr float kScreens = 2;  // heights of the view that are scrolled before rows become low
  const float all = static_cast<float>(ranks_shown(store, options)) * (kRankHeaderHeight + kLaneGap);
  options.heat = options.rank_height == RankHeight::heat ||
                 (options.rank_height == RankHeight::automatic && all > kScreens * height);
}

void expand_while_room(const store::Store& store, TimelineOptions& options, float height) {
  options.compute_depths = kComputeDepths;
  options.lane_depths = kLaneDepths;
  std::vector<std::uint32_t> ranks;
  for (const RankGroup& group : shown_groups(store, options))
    ranks.insert(ranks.end(), group.ranks.begin(), group.ranks.end());
  if (!ranks.empty() && options.expanded.empty()) options.expanded.insert(ranks.front());
  // Before the height is known only one rank is expanded.
  if (height > 0 && options.expanded.size() == 1) {
    const float whole = layout_rows(store, options).height;
    const std::uint32_t open = *options.expanded.begin();
    if (whole > height) {
      if (std::ranges::find(ranks, open) != ranks.end()) leave_out_rows(store, options, open, whole, height);
      return;
    }
  }
  for (const std::uint32_t rank : ranks) {
    if (!options.expanded.insert(rank).second) continue;
    if (layout_rows(store, options).height > height) {
      options.expanded.erase(rank);
      return;
    }
  }
}

std::optional<store::Span> span_at(const store::Store& store, store::LaneId lane, std::uint8_t depth,
                                   std::int64_t at_ns, std::int64_t slack_ns) {
  std::optional<store::Span> best;
  std::int64_t best_distance = slack_ns + 1;
  for (const store::Span& span : store.spans(lane, depth, at_ns - slack_ns, at_ns + slack_ns + 1)) {
    const std::int64_t distance = at_ns < span.begin_ns  ? span.begin_ns - at_ns
                                  : at_ns >= span.end_ns ? at_ns - span.end_ns
                                                         : 0;
    if (distance < best_distance) {
      best = span;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace shardscope::gui
