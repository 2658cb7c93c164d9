#include "app/gui/views/rank_header.h"

#include "app/gui/model/clock_bound.h"
#include "app/gui/model/format.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/views/span_painter.h"

namespace shardscope::gui {

void draw_rank_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      const TimeScale& scale) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const bool over = ctx.hovered(gutter);
  if (over) ctx.canvas.fill(gutter, c.raised);
  const float y = gutter.y + gutter.h / 2;
  const float x = gutter.x + 12;
  if (row.expanded)
    ctx.canvas.triangle(x - 4, y - 2, x + 4, y - 2, x, y + 3, c.muted);
  else
    ctx.canvas.triangle(x - 2, y - 4, x - 2, y + 4, x + 3, y, c.muted);
  const RankPace pace = rank_pace(app, row.rank);
  const bool chosen = app.selection.kind == SelectionKind::rank && app.selection.rank == row.rank;
  Rect text = gutter;
  text.take_left(22);
  if (pace.busy_ns > 0) {
    const Quantity time = duration(pace.busy_ns);
    ctx.quantity(text.take_right(70), time.number, time.unit, 26,
                 pace.straggler ? c.of(Meaning::trouble) : c.text);
  }
  if (pace.straggler)
    ctx.canvas.fill({gutter.right() - 3, gutter.y + 3, 3, gutter.h - 6}, c.of(Meaning::trouble));
  ctx.canvas.text_in(text, "rank " + std::to_string(row.rank), chosen ? c.accent : c.text, Font::strong);
  if (over) {
    ctx.tip(std::string(pace.straggler ? "Straggler: computes longer than the others. " : "") +
            (pace.step ? "Computation in step " + std::to_string(*pace.step) + ". " : std::string()) +
            "Its times here are right to within " + duration(clock_bound(app, row.rank).in_view_ns).text() +
            ". " + "Click the triangle to show or hide the lanes, the name to select.");
    if (ctx.pointer.pressed[0]) {
      if (ctx.pointer.x < gutter.x + 22 || chosen) {
        app.timeline.automatic = false;
        if (!app.timeline.expanded.erase(row.rank)) app.timeline.expanded.insert(row.rank);
      }
      app.select_rank(row.rank);
    }
  }
  if (!row.expanded) {
    SpanPainter(ctx, scale).rank_strip(row.rank, lanes);
  }
}

}  // namespace shardscope::gui
