#include "app/gui/model/aligned_lanes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "app/store/lane.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;
using store::Store;

/// One run in its aligned parts.
struct AlignedSide {
  const Store& store;
  std::span<const AlignedPart> parts;
  TimeRange AlignedPart::*range;
  std::optional<std::uint32_t> rank;
  [[nodiscard]] std::int64_t begin_ns() const { return (parts.front().*range).begin_ns; }
  [[nodiscard]] std::int64_t end_ns() const { return (parts.back().*range).end_ns; }
};

/// Splits a span at the parts and moves each piece to its part's position on the scale. `from`: the first
/// part that does not end before it.
void add_pieces(const AlignedSide& side, const store::Span& span, std::size_t& from,
                std::vector<AlignedBox>& out) {
  const std::int64_t until = store::time_of(side.store, *side.rank, span).until_ns;
  while (from < side.parts.size() && (side.parts[from].*side.range).end_ns <= span.begin_ns) ++from;
  for (std::size_t i = from; i < side.parts.size(); ++i) {
    const TimeRange& range = side.parts[i].*side.range;
    if (range.begin_ns >= until) break;
    const std::int64_t begin = std::max(span.begin_ns, range.begin_ns);
    const std::int64_t end = std::min(until, range.end_ns);
    if (end > begin) out.push_back({span, side.parts[i].at_ns + begin - range.begin_ns, end - begin});
  }
}

std::size_t spans_in(const AlignedSide& side, ev::StreamId stream, std::uint8_t depth) {
  return side.store.span_count({*side.rank, stream}, depth, side.begin_ns(), side.end_ns());
}

/// Fills one run's boxes of a lane, or says that they are too many.
void fill(AlignedLane& lane, std::size_t run, const AlignedSide& side) {
  const store::LaneId id{*side.rank, lane.stream};
  std::vector<AlignedBox>& boxes = lane.boxes[run];
  boxes.clear();
  std::size_t from = 0;
  if (!lane.waits()) {
    lane.spans[run] = spans_in(side, lane.stream, lane.depth);
    lane.too_many[run] = lane.spans[run] > kMostBoxes;
    if (lane.too_many[run]) return;
    side.store.for_each_span(id, lane.depth, side.begin_ns(), side.end_ns(),
                             [&](const store::Span& span) { add_pieces(side, span, from, boxes); });
    return;
  }
  // Waits are between other spans of several depths, all of which are read.
  std::size_t read = 0;
  for (std::uint8_t depth = 0; depth < side.store.depth_count(id); ++depth)
    read += spans_in(side, lane.stream, depth);
  constexpr std::size_t kMostRead = 4 * kMostBoxes;
  std::vector<store::Span> waits;
  if (read <= kMostRead) {
    for (std::uint8_t depth = 0; depth < side.store.depth_count(id); ++depth)
      side.store.for_each_span(id, depth, side.begin_ns(), side.end_ns(), [&](const store::Span& span) {
        if (store::is_wait(span.kind)) waits.push_back(span);
      });
  }
  lane.spans[run] = read <= kMostRead ? waits.size() : read;
  lane.too_many[run] = lane.spans[run] > kMostBoxes;
  if (lane.too_many[run]) return;
  std::ranges::stable_sort(waits, {}, &store::Span::begin_ns);
  for (const store::Span& wait : waits) add_pieces(side, wait, from, boxes);
}

std::array<AlignedSide, 2> sides_of(const Store& a, const Store& b, std::span<const AlignedPart> parts,
                                    std::optional<std::uint32_t> rank) {
  return {AlignedSide{a, parts, &AlignedPart::a, rank_or_lowest(a, rank)},
          AlignedSide{b, parts, &AlignedPart::b, rank_or_lowest(b, rank)}};
}

}  // namespace

std::vector<AlignedLane> aligned_lanes(const Store& a, const Store& b, std::span<const AlignedPart> parts,
                                       std::optional<std::uint32_t> rank) {
  std::vector<AlignedLane> out;
  if (parts.empty()) return out;
  const auto sides = sides_of(a, b, parts, rank);
  const auto add = [&](ev::StreamId stream, std::uint8_t depth) {
    AlignedLane lane{.stream = stream, .depth = depth};
    for (std::size_t i = 0; i < sides.size(); ++i)
      if (sides[i].rank) fill(lane, i, sides[i]);
    lane.crowded = lane.too_many;
    if (!lane.boxes[0].empty() || !lane.boxes[1].empty() || lane.too_many[0] || lane.too_many[1])
      out.push_back(std::move(lane));
  };
  for (std::uint8_t at = 0; at < ev::kStreamCount; ++at) {
    const auto stream = static_cast<ev::StreamId>(at);
    // The step itself, and how far GPU records reach.
    if (stream == ev::StreamId::host || stream == ev::StreamId::gpu_records) continue;
    std::uint8_t depths = 0;
    for (const AlignedSide& side : sides)
      if (side.rank) depths = std::max(depths, side.store.depth_count({*side.rank, stream}));
    for (std::uint8_t depth = 0; depth < depths; ++depth) add(stream, depth);
    if (stream == ev::StreamId::compute && depths > 0) add(stream, Store::kWaits);
  }
  return out;
}

void see_crowded(std::vector<AlignedLane>& lanes, const Store& a, const Store& b,
                 std::span<const AlignedPart> visible, std::optional<std::uint32_t> rank) {
  if (visible.empty()) return;
  const auto sides = sides_of(a, b, visible, rank);
  for (AlignedLane& lane : lanes) {
    for (std::size_t i = 0; i < sides.size(); ++i)
      if (sides[i].rank && lane.crowded[i]) fill(lane, i, sides[i]);
  }
}

std::vector<std::size_t> lanes_in(std::span<const AlignedLane> lanes, std::size_t rows) {
  std::vector<std::size_t> out(lanes.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  const auto leave_out = [&](bool compute) {
    for (auto at = out.end(); at != out.begin() && out.size() > rows;) {
      const std::size_t lane = *--at;
      const bool outermost = lane == 0 || !lanes[lane - 1].belongs_with(lanes[lane]);
      if ((lanes[lane].stream == ev::StreamId::compute) == compute && !outermost) at = out.erase(at);
    }
  };
  leave_out(true);
  leave_out(false);
  return out;
}

}  // namespace shardscope::gui
