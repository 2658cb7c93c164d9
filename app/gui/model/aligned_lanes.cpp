#include "app/gui/model/aligned_lanes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;

/// Splits the spans of a step at the parts and moves each piece to its part's position on the scale.
std::vector<AlignedBox> boxes_of(const store::Store& store, store::LaneId lane, std::uint8_t depth,
                                 const store::StepRow& step, std::span<const AlignedPart> parts,
                                 TimeRange AlignedPart::*side) {
  std::vector<AlignedBox> out;
  std::size_t from = 0;  // the first part that does not end before the span
  store.for_each_span(lane, depth, step.begin_ns, step.end_ns, [&](const store::Span& span) {
    const std::int64_t until = store::time_of(store, lane.rank, span).until_ns;
    while (from < parts.size() && (parts[from].*side).end_ns <= span.begin_ns) ++from;
    for (std::size_t i = from; i < parts.size() && (parts[i].*side).begin_ns < until; ++i) {
      const TimeRange& range = parts[i].*side;
      const std::int64_t begin = std::max(span.begin_ns, range.begin_ns);
      const std::int64_t end = std::min(until, range.end_ns);
      if (end > begin) out.push_back({span, parts[i].at_ns + begin - range.begin_ns, end - begin});
    }
  });
  return out;
}

std::optional<store::LaneId> lane_of(const store::Store& store, ev::StreamId stream) {
  if (store.ranks().empty()) return std::nullopt;
  return store::LaneId{store.ranks().front().rank, stream};
}

}  // namespace

std::vector<AlignedLane> aligned_lanes(const store::Store& a, const store::StepRow& step_of_a,
                                       const store::Store& b, const store::StepRow& step_of_b,
                                       std::span<const AlignedPart> parts) {
  struct Side {
    const store::Store& store;
    const store::StepRow& step;
    TimeRange AlignedPart::*range;
  };
  const std::array sides{Side{a, step_of_a, &AlignedPart::a}, Side{b, step_of_b, &AlignedPart::b}};
  std::vector<AlignedLane> out;
  for (const ev::StreamId stream : {ev::StreamId::compute, ev::StreamId::gather, ev::StreamId::reduce}) {
    std::uint8_t depths = 0;
    for (const Side& side : sides) {
      if (const auto lane = lane_of(side.store, stream))
        depths = std::max(depths, side.store.depth_count(*lane));
    }
    for (std::uint8_t depth = 0; depth < depths; ++depth) {
      AlignedLane row{stream, depth};
      for (std::size_t i = 0; i < sides.size(); ++i) {
        const Side& side = sides[i];
        const auto lane = lane_of(side.store, stream);
        if (!lane) continue;
        row.spans[i] = side.store.span_count(*lane, depth, side.step.begin_ns, side.step.end_ns);
        row.too_many[i] = row.spans[i] > kMostBoxes;
        if (!row.too_many[i]) row.boxes[i] = boxes_of(side.store, *lane, depth, side.step, parts, side.range);
      }
      if (!row.boxes[0].empty() || !row.boxes[1].empty() || row.too_many[0] || row.too_many[1])
        out.push_back(std::move(row));
    }
  }
  return out;
}

std::vector<std::size_t> lanes_in(std::span<const AlignedLane> lanes, std::size_t rows) {
  std::vector<std::size_t> out(lanes.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  const auto leave_out = [&](bool compute) {
    for (auto at = out.end(); at != out.begin() && out.size() > rows;) {
      const std::size_t lane = *--at;
      const bool outermost = lane == 0 || lanes[lane - 1].stream != lanes[lane].stream;
      if ((lanes[lane].stream == ev::StreamId::compute) == compute && !outermost) at = out.erase(at);
    }
  };
  leave_out(true);
  leave_out(false);
  return out;
}

}  // namespace shardscope::gui
