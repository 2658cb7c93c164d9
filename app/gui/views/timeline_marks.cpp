#include "app/gui/views/timeline_marks.h"

#include <algorithm>

#include "app/gui/model/arrivals.h"
#include "app/gui/model/format.h"
#include "app/store/gap_text.h"
#include "app/store/pauses.h"
#include "app/store/rank_end.h"
#include "app/store/span_time.h"

namespace shardscope::gui {

void draw_gaps(Context& ctx, std::uint32_t rank, const Rect& rect, const TimeScale& scale) {
  for (const store::Gap& gap : ctx.app.store().gaps()) {
    if (gap.rank != rank || gap.end_ns < scale.range.begin_ns || gap.begin_ns > scale.range.end_ns) continue;
    const float x0 = std::max(rect.x, scale.x_of(gap.begin_ns));
    const float x1 = std::min(rect.right(), std::max(x0 + 2, scale.x_of(gap.end_ns)));
    const Rect where{x0, rect.y, x1 - x0, rect.h};
    ctx.canvas.fill(where, ctx.colors().base, 0.7F);
    const Palette& c = ctx.colors();
    ctx.canvas.hatch(where, gap.damaged ? c.of(Meaning::trouble) : c.muted, 0.5F, 8);
    if (gap.damaged && where.w > 80) {
      ctx.canvas.text_in(where, "damaged", c.of(Meaning::trouble), Font::body, Align::centre);
    }
    if (ctx.hovered(where)) {
      ctx.tip("Missing here, " + duration(gap.end_ns - gap.begin_ns).text() + " of rank " +
              std::to_string(rank) + ": " + store::what_is_missing(gap));
    }
  }
}

void draw_pauses(Context& ctx, const store::Store& data, std::uint32_t rank, const Rect& rect,
                 const TimeScale& scale) {
  const Palette& c = ctx.colors();
  const std::int64_t known_until = store::known_until(data, rank);
  data.for_each_span({rank, ev::StreamId::host}, store::kPauses, scale.range.begin_ns, scale.range.end_ns,
                     [&](const store::Span& pause) {
                       const bool open = pause.end_ns == store::kOpen;
                       const std::int64_t end = open ? std::max(known_until, pause.begin_ns) : pause.end_ns;
                       const float x0 = std::max(rect.x, scale.x_of(pause.begin_ns));
                       const float x1 = std::min(rect.right(), scale.x_of(end));
                       if (x1 - x0 < 1) return;
                       const Rect where{x0, rect.y, x1 - x0, rect.h};
                       ctx.canvas.fill(where, c.panel, 0.85F);
                       ctx.canvas.hatch(where, c.muted, 0.35F, 10);
                       if (where.w > 60)
                         ctx.canvas.text_in(where, "paused", c.muted, Font::small, Align::centre);
                       if (ctx.hovered(where)) {
                         ctx.tip(std::string("Paused by the user") +
                                 (!open                              ? " for "
                                  : store::still_running(data, rank) ? ", so far "
                                                                     : ", up to its last event ") +
                                 duration(end - pause.begin_ns).text() +
                                 ": excluded from durations and metrics");
                       }
                     });
}

void draw_rank_end(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale) {
  const store::Store& data = ctx.app.store();
  const auto found = std::ranges::find(data.ranks(), row.rank, &store::RankRow::rank);
  if (found == data.ranks().end()) return;
  const store::RankEnd end = store::rank_end(data, *found);
  // A rank that finished normally has no mark.
  if (end.how == store::RankEnd::How::running || end.how == store::RankEnd::How::finished) return;
  if (!scale.range.contains(end.at_ns)) return;
  const Palette& c = ctx.colors();
  const Rgb color = store::is_failure(end.how) ? c.of(Meaning::trouble) : c.muted;
  const float x = scale.x_of(end.at_ns);
  ctx.canvas.vertical(x, rect.y - kLaneGap, rect.h + kLaneGap, color, 1, 2);
  const Rect right{x + 2, rect.y, rect.right() - x - 2, rect.h};
  if (row.kind == RowKind::rank) {
    const std::string mark = store::mark_of(end);
    const float width = ctx.canvas.width(mark, Font::small) + 10;
    const bool fits = width <= right.w;
    const float to = std::min(x - 3, rect.right());
    const Rect text = fits ? Rect{x + 3, rect.y, width, rect.h}
                           : Rect{std::max(rect.x, to - width), rect.y, std::min(width, to - rect.x), rect.h};
    if (text.w > 40) {
      ctx.canvas.fill(text, c.panel, 0.9F, 3);
      ctx.canvas.text_in(text.inset(5, 0), mark, color, Font::small);
    }
  }
  if (ctx.hovered({x - 4, rect.y, 8, rect.h})) {
    ctx.tip(store::text_of(end) + " at " + timestamp(end.at_ns, 1000) +
            (end.exit_message.empty() ? "" : ": " + end.exit_message));
  }
}

void draw_flush_mark(Context& ctx, float x, float y, FlushShape shape) {
  constexpr float kHalf = kFlushMarkHalf - 1, kHeight = 7;
  const Palette& c = ctx.colors();
  ctx.canvas.triangle(x - kHalf - 1, y, x + kHalf + 1, y, x, y + kHeight + 2, c.panel);
  ctx.canvas.triangle(x - kHalf, y, x + kHalf, y, x, y + kHeight, c.text);
  if (shape == FlushShape::rest)
    ctx.canvas.triangle(x - kHalf + 2, y + 1, x + kHalf - 2, y + 1, x, y + kHeight - 2.5F, c.panel);
}

bool draw_flushes(Context& ctx, std::uint32_t rank, const Rect& rect, const TimeScale& scale) {
  constexpr float kApart = 10;
  const Session& run = *ctx.app.run;
  const FlushMark* under = nullptr;
  const std::vector<FlushMark> marks = flush_marks(run.index().flushes(rank), scale, kApart);
  for (const FlushMark& mark : marks) {
    draw_flush_mark(ctx, mark.x, rect.y, mark.shape);
    if (ctx.under_pointer({mark.x - kFlushMarkHalf, rect.y, 2 * kFlushMarkHalf, 9})) under = &mark;
  }
  if (under == nullptr) return false;
  if (ctx.ui.captured == nullptr) ctx.tip(text_of(run, *under));
  return true;
}

void draw_arrivals(Context& ctx, const TimelineRows& rows, const Rect& lanes, const TimeScale& scale) {
  const Selection& selected = ctx.app.selection;
  if (selected.kind != SelectionKind::collective || !selected.span) return;
  const std::vector<Arrival> all = arrivals(ctx.app.store(), selected.lane, *selected.span);
  const Arrival* last = last_to_arrive(all);
  if (last == nullptr) return;
  const Palette& c = ctx.colors();
  const Clip clip(ctx.canvas, lanes);
  std::optional<std::pair<float, float>> before;
  for (const Arrival& arrival : all) {
    std::optional<float> middle;
    for (const TimelineRow& row : rows.rows) {
      if (row.rank != arrival.rank) continue;
      // The collective's lane, or the overview of a rank with hidden lanes.
      const bool place = row.kind == RowKind::rank
                             ? !row.expanded
                             : row.lane() == store::LaneId{row.rank, selected.lane.stream};
      if (!place) continue;
      middle = lanes.y + 4 + row.y + row.height / 2 - ctx.app.timeline_scroll;
      break;
    }
    if (!middle) continue;
    const float x = scale.x_of(arrival.at_ns);
    if (before) ctx.canvas.line(before->first, before->second, x, *middle, c.text, 0.7F, 1.5F);
    before = {x, *middle};
    const Rgb color = &arrival == last ? c.of(Meaning::trouble) : c.text;
    ctx.canvas.fill({x - 3, *middle - 3, 6, 6}, color, 1.0F, 3);
  }
}

}  // namespace shardscope::gui
