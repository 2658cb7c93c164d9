#include "app/gui/views/hit_marks.h"

#include <algorithm>

#include "app/gui/model/finder.h"

namespace shardscope::gui {
namespace {

constexpr float kMark = 2;  // height, and the least width

bool on_row(const TimelineRow& row, const SpanHit& hit) {
  if (row.kind == RowKind::rank) return true;
  return row.kind == RowKind::waits ? hit.wait : hit.depth == row.depth;
}

/// From one mark to the next by halving: what millions of hits in view cost is what the row has of columns.
void mark_lane(Context& ctx, const SpanSearch::Lane& lane, const TimelineRow& row, const Rect& rect,
               const TimeScale& scale) {
  constexpr std::ptrdiff_t kLookedAt = 64;  // hits of other rows in one column
  const SpanFilter& filter = ctx.app.find.filter;
  const Rgb color = ctx.colors().accent;
  const auto by_begin = [&](auto from, std::int64_t ns) {
    return std::ranges::lower_bound(from, lane.hits.end(), ns, {}, &SpanHit::begin_ns);
  };
  // A hit that began before may reach into the range: of each depth the last can.
  auto at = by_begin(lane.hits.begin(), scale.range.begin_ns);
  for (int back = 0; back < 32 && at != lane.hits.begin(); ++back) --at;
  while (at != lane.hits.end() && at->begin_ns < scale.range.end_ns) {
    if (at->begin_ns + at->time_ns < scale.range.begin_ns || !on_row(row, *at) ||
        !filter.accepts(lane.id, *at)) {
      ++at;
      continue;
    }
    const float x0 = std::max(rect.x, scale.x_of(at->begin_ns));
    const float x1 = std::min(rect.right(), std::max(x0 + kMark, scale.x_of(at->begin_ns + at->time_ns)));
    ctx.canvas.fill({x0, rect.bottom() - kMark, x1 - x0, kMark}, color);
    const auto next = by_begin(at + 1, scale.time_of(x0 + kMark));
    // Those that begin in the same column lie under the mark, unless one of them is longer.
    const auto looked_at = std::min<std::ptrdiff_t>(next - at, kLookedAt);
    const auto longer = std::find_if(at + 1, at + looked_at, [&](const SpanHit& hit) {
      return on_row(row, hit) && scale.x_of(hit.begin_ns + hit.time_ns) > x1;
    });
    at = longer != at + looked_at ? longer : std::max(at + 1, next);
  }
}

}  // namespace

void mark_hits(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale) {
  const Finder& find = ctx.app.find;
  if (!find.marks()) return;
  for (const SpanSearch::Lane& lane : find.search.lanes()) {
    if (lane.id.rank != row.rank || (row.kind == RowKind::rank && row.expanded)) continue;
    if (row.kind == RowKind::rank || lane.id == row.lane()) mark_lane(ctx, lane, row, rect, scale);
  }
}

}  // namespace shardscope::gui
