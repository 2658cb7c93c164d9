#include "app/gui/views/timeline_keys.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/views/lane_menu.h"
#include "app/gui/views/span_menu.h"

namespace shardscope::gui {

void TimelineKeys::across(Context& ctx, const TimelineRow& row, Toward toward) {
  AppState& app = ctx.app;
  goes_on_.reset();
  if (row.kind == RowKind::rank || row.kind == RowKind::node) {
    set_expanded(app.timeline, row, toward == Toward::later);
    return;
  }
  if (!row.is_lane()) return;
  const SpanBeside next = next_on_row(app, row, toward);
  if (!next.read) {
    goes_on_ = toward;
    ctx.moving = true;
    return;
  }
  if (!next.span) return;
  app.select_span(row.lane(), *next.span);
  app.set_now(next.span->begin_ns);
  // Of a span longer than the range its begin is enough.
  const std::int64_t shown = app.time.range().length() / 10;
  app.time.reveal({next.span->begin_ns, std::min(next.span->end_ns, next.span->begin_ns + shown)},
                  app.store().end_ns());
}

void TimelineKeys::open(Context& ctx, const TimelineRow& row, const Rect& place,
                        const TimeScale& scale) const {
  AppState& app = ctx.app;
  switch (row.kind) {
    case RowKind::node:
      set_expanded(app.timeline, row, !row.expanded);
      return;
    case RowKind::rank:
      open_rank_menu(ctx, row.rank, Rect{place.x + 22, place.y, 80, place.h});
      return;
    case RowKind::param:
      app.select_param(row.param, app.memory_rank);
      return;
    case RowKind::status:
      app.select_param(row.param, row.rank);
      return;
    case RowKind::counter:
      return;
    default:
      break;
  }
  const Selection s = app.selection;
  if (!s.span || s.lane != row.lane()) {
    if (row.kind != RowKind::waits) open_lane_menu(ctx, row, place);
    return;
  }
  const float x = std::clamp(scale.x_of(s.span->begin_ns), scale.left, scale.left + scale.width - 40);
  open_span_menu(ctx, s.lane, *s.span, Rect{x, place.y, 1, place.h});
}

/// At the selected span of the row, else at the cursor; for the header of ranks at their names.
void TimelineKeys::aim_tip(Context& ctx, const TimelineRow& row, const Rect& place, const TimeScale& scale) {
  const AppState& app = ctx.app;
  const float y = place.y + place.h / 2;
  if (row.kind == RowKind::rank || row.kind == RowKind::node || row.kind == RowKind::param) {
    ctx.ui.key_tip.aim(place.x + place.w / 2, y);
    return;
  }
  const TimeRange shown = scale.range;
  std::int64_t at = shown.contains(app.now_ns()) ? app.now_ns() : shown.begin_ns + shown.length() / 2;
  const Selection& s = app.selection;
  if (row.is_lane() && s.span && s.lane == row.lane()) {
    const std::int64_t begin = std::max(s.span->begin_ns, shown.begin_ns);
    const std::int64_t end = std::min(s.span->end_ns, shown.end_ns);
    if (end > begin) at = begin + (end - begin) / 2;
  }
  ctx.ui.key_tip.aim(scale.x_of(at), y);
}

void TimelineKeys::look(Context& ctx, const TimelineRows& rows, const Rect& room, const Rect& lanes,
                        float gutter, float top, const TimeScale& scale) {
  AppState& app = ctx.app;
  const Context::KeyArea keys = ctx.key_area(room, "ranks and lanes");
  if (!keys.at || rows.rows.empty()) {
    goes_on_.reset();
    return;
  }
  std::optional<std::size_t> found = at_ ? index_of(rows, *at_) : std::nullopt;
  if (at_ && !found && at_->is_lane()) {
    // Its level was hidden: the first row of the lane.
    at_->depth = 0;
    found = index_of(rows, *at_);
  }
  const std::size_t before = found.value_or(row_of_selection(app, rows));
  const auto last = static_cast<std::ptrdiff_t>(rows.rows.size()) - 1;
  const auto at = static_cast<std::size_t>(
      std::clamp(static_cast<std::ptrdiff_t>(before) + keys.down, std::ptrdiff_t{0}, last));
  const TimelineRow& row = rows.rows[at];
  at_ = row;
  if (keys.down != 0 || !found) {
    float& scroll = app.timeline_scroll;
    scroll =
        std::clamp(scroll, row.y + row.height + 8 - room.h, std::max(row.y + row.height + 8 - room.h, row.y));
    ctx.moving = true;
  }
  const Rect place{room.x, top + row.y, gutter, row.height};
  {
    const Clip clip(ctx.canvas, room);
    ctx.canvas.outline({place.x + 1, place.y - 1, gutter - 6, place.h + 2}, ctx.colors().accent, 1, 1.5F, 3);
    ctx.canvas.horizontal(lanes.x, place.y + place.h, lanes.w, ctx.colors().accent, 0.5F);
  }
  const auto goes_on = std::exchange(goes_on_, std::nullopt);
  if (keys.across != 0)
    across(ctx, row, keys.across > 0 ? Toward::later : Toward::earlier);
  else if (goes_on)
    across(ctx, row, *goes_on);
  if (keys.chosen || keys.menu) open(ctx, row, place, scale);
  aim_tip(ctx, row, place, scale);
}

}  // namespace shardscope::gui
