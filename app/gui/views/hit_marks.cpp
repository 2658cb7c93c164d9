#include "app/gui/views/hit_marks.h"

#include "app/gui/model/hit_marks.h"

namespace shardscope::gui {
namespace {

constexpr float kMark = 2;  // height and minimum width

bool on_row(const TimelineRow& row, const HitMarks::List& list) {
  if (row.kind == RowKind::rank) return true;
  return row.kind == RowKind::waits ? list.wait : list.depth == row.depth;
}

}  // namespace

void mark_hits(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale) {
  const Finder& find = ctx.app.find;
  if (!find.marked()) return;
  const auto lanes = find.search.lanes();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].id.rank != row.rank || (row.kind == RowKind::rank && row.expanded)) continue;
    if (row.kind != RowKind::rank && lanes[i].id != row.lane()) continue;
    for (const HitMarks::List& list : find.marks.lists(i)) {
      if (!on_row(row, list)) continue;
      for (const HitMark& mark : marks_of(lanes[i], list, scale, kMark))
        ctx.canvas.fill({mark.x0, rect.bottom() - kMark, mark.x1 - mark.x0, kMark}, ctx.colors().accent);
    }
  }
}

}  // namespace shardscope::gui
