#include "app/gui/model/timeline_rows.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "app/gui/model/names.h"
#include "app/store/lane_name.h"

namespace shardscope::gui {
namespace {

/// Of the lanes of the GPU those that are shown, from top to bottom, behind those that the run names.
constexpr std::array kGpuRows{ev::StreamId::extra_1,     ev::StreamId::extra_2,     ev::StreamId::extra_3,
                              ev::StreamId::extra_4,     ev::StreamId::gpu_compute, ev::StreamId::gpu_gather,
                              ev::StreamId::gpu_reduce,  ev::StreamId::gpu_copy,    ev::StreamId::gpu_other_1,
                              ev::StreamId::gpu_other_2, ev::StreamId::gpu_other_3, ev::StreamId::gpu_host};

std::uint8_t visible_depths(const store::Store& store, std::uint32_t rank, ev::StreamId stream,
                            std::uint8_t most) {
  return std::min(store.depth_count({rank, stream}), most);
}

std::vector<std::uint32_t> ranks_in_order(const store::Store& store, const TimelineOptions& options) {
  if (!options.ranks.empty()) return options.ranks;
  std::vector<std::uint32_t> out;
  for (const store::RankRow& rank : store.ranks()) out.push_back(rank.rank);
  return out;
}

/// Ranks of one host, or all of them without one where they are not grouped.
struct Node {
  std::string host;
  std::vector<std::uint32_t> ranks;
};

/// By host where the ranks are of several and stand in the order of their numbers.
std::vector<Node> nodes(const store::Store& store, const TimelineOptions& options) {
  std::vector<Node> out;
  if (options.ranks.empty()) {
    for (const store::RankRow& rank : store.ranks()) {
      // Ranks of a node mostly follow one another.
      auto known = !out.empty() && out.back().host == rank.host
                       ? std::prev(out.end())
                       : std::ranges::find(out, rank.host, &Node::host);
      if (known == out.end()) known = out.insert(known, Node{rank.host, {}});
      known->ranks.push_back(rank.rank);
    }
    if (out.size() > 1) return out;
  }
  return {Node{"", ranks_in_order(store, options)}};
}

/// The first of every kNumbered heat rows that follow one another.
void number_heat_rows(std::vector<TimelineRow>& rows) {
  constexpr std::size_t kNumbered = 3;  // so many are as high as a number
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i;
    while (end < rows.size() && rows[end].heat) ++end;
    for (; i + kNumbered <= end; i += kNumbered) rows[i].numbered = true;
    i = std::max(end, i + 1);
  }
}

}  // namespace

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
    if (depth == 0 && kind > RowKind::rank && kind != RowKind::waits && kind != RowKind::gpu)
      row.given_name = store::given_lane_name(store, row.lane());
    y += height + kLaneGap;
  };
  const auto add_lanes = [&](std::uint32_t rank) {
    const float lane = options.view.lane_height;
    const std::uint8_t host = visible_depths(store, rank, ev::StreamId::host, 2);
    for (std::uint8_t d = 0; d < host; ++d) add(RowKind::host, rank, d, lane, false);
    const std::uint8_t compute = visible_depths(store, rank, ev::StreamId::compute, options.compute_depths);
    for (std::uint8_t d = 0; d < compute; ++d) add(RowKind::compute, rank, d, lane, false);
    if (compute != 0 && !options.view.hides(ItemClass::waits)) add(RowKind::waits, rank, 0, lane, false);
    for (const RowKind kind :
         {RowKind::gather, RowKind::reduce, RowKind::copy, RowKind::nvme, RowKind::worker}) {
      const bool collectives = kind == RowKind::gather || kind == RowKind::reduce;
      if (collectives && options.view.hides(ItemClass::collectives)) continue;
      const TimelineRow probe{.kind = kind, .rank = rank};
      const std::uint8_t depths = visible_depths(store, rank, probe.lane().stream, 2);
      for (std::uint8_t d = 0; d < depths; ++d) add(kind, rank, d, lane, false);
    }
    for (const ev::StreamId stream : kGpuRows) {
      if (store.depth_count({rank, stream}) == 0 || options.view.hides(ItemClass::gpu)) continue;
      add(RowKind::gpu, rank, 0, lane, false);
      out.rows.back().gpu_lane = stream;
      out.rows.back().given_name = store::given_lane_name(store, {rank, stream});
    }
    y += kRankGap - kLaneGap;
  };
  for (const Node& node : nodes(store, options)) {
    if (!node.host.empty()) {
      const bool open = !options.closed_nodes.contains(node.host);
      add(RowKind::node, ev::kNoId, 0, kLaneHeight, open);
      out.rows.back().given_name = node.host;
      out.rows.back().ranks = node.ranks;
      if (!open) continue;
    }
    for (const std::uint32_t rank : node.ranks) {
      const bool expanded = options.expanded.contains(rank);
      const bool heat = options.heat && !expanded;
      add(RowKind::rank, rank, 0, heat ? kHeatHeight : kRankHeaderHeight, expanded);
      out.rows.back().heat = heat;
      if (heat) y -= kLaneGap - kHeatGap;
      if (expanded) add_lanes(rank);
    }
  }
  number_heat_rows(out.rows);
  out.height = y;
  return out;
}

void resolve_height(const store::Store& store, TimelineOptions& options, float height) {
  constexpr float kScreens = 2;  // of ranks, that are scrolled through rather than lowered
  const float all = static_cast<float>(store.ranks().size()) * (kRankHeaderHeight + kLaneGap);
  options.heat = options.rank_height == RankHeight::heat ||
                 (options.rank_height == RankHeight::automatic && all > kScreens * height);
}

void expand_while_room(const store::Store& store, TimelineOptions& options, float height) {
  for (const std::uint32_t rank : ranks_in_order(store, options)) {
    if (!options.expanded.insert(rank).second) continue;
    const bool first = options.expanded.size() == 1;
    if (!first && layout_rows(store, options).height > height) {
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
