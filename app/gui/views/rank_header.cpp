#include "app/gui/views/rank_header.h"

#include <algorithm>
#include <string>
#include <vector>

#include "app/gui/model/clock_bound.h"
#include "app/gui/model/format.h"
#include "app/gui/model/rank_pace.h"

namespace shardscope::gui {
namespace {

/// The rank's pace and how long others waited for it, each followed by a space.
std::string pace_and_waits(const AppState& app, std::uint32_t rank, const RankPace& pace) {
  std::string out;
  for (const std::string& text : {pace_text(pace), waited_for_text(app, rank)})
    if (!text.empty()) out += text + " ";
  return out;
}

/// Number of omitted lane rows, and a button to show them.
void draw_left_out(Context& ctx, const TimelineRow& row, const Rect& lanes) {
  if (!row.expanded || row.left_out == 0) return;
  const std::string text = std::to_string(row.left_out) + (row.left_out == 1 ? " lane row" : " lane rows") +
                           " hidden to fit. Show " + (row.left_out == 1 ? "it" : "them");
  const Rect place{lanes.x + 4, lanes.y, std::min(lanes.w - 8, ctx.canvas.width(text, Font::small) + 2),
                   lanes.h};
  const bool over = ctx.hovered(place);
  ctx.canvas.text_in(place, text, over ? ctx.colors().accent : ctx.colors().muted, Font::small);
  if (!ctx.activated(place, "show all lane rows")) return;
  TimelineOptions& options = ctx.app.timeline;
  options.automatic = false;
  options.compute_depths = kComputeDepths;
  options.lane_depths = kLaneDepths;
}

void triangle(Context& ctx, const Rect& gutter, bool open) {
  const float y = gutter.y + gutter.h / 2;
  const float x = gutter.x + 12;
  if (open)
    ctx.canvas.triangle(x - 4, y - 2, x + 4, y - 2, x, y + 3, ctx.colors().muted);
  else
    ctx.canvas.triangle(x - 2, y - 4, x - 2, y + 4, x + 3, y, ctx.colors().muted);
}

}  // namespace

void draw_heat_row(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                   SpanPainter& painter, const RankPaces& paces, bool clicked) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const RankPace pace = paces.of(row.rank);
  const Rect whole{gutter.x, gutter.y, lanes.right() - gutter.x, row.height + kHeatGap};
  const bool over = ctx.hovered(whole);
  if (row.numbered)
    ctx.canvas.text(gutter.x + 22, gutter.y - 2, std::to_string(row.rank), c.muted, Font::mono_small);
  if (const std::int64_t longest = paces.longest_ns(); longest > 0 && pace.busy_ns > 0) {
    constexpr float kNumber = 62;
    const float most = gutter.w - kNumber;
    const float width = std::max(1.0F, most * static_cast<float>(pace.busy_ns) / static_cast<float>(longest));
    ctx.canvas.fill({gutter.x + kNumber, gutter.y, width, row.height},
                    pace.straggler() ? c.of(Meaning::trouble) : c.of(Meaning::compute), 0.8F);
  }
  painter.heat({&row.rank, 1}, lanes);
  const bool chosen = app.selection.kind == SelectionKind::rank && app.selection.rank == row.rank;
  if (over || chosen) ctx.canvas.outline(whole, over ? c.text : c.accent, 1, 1);
  // A click ends with the release, when the pointer may have left this low row.
  if (clicked) {
    app.timeline.automatic = false;
    app.timeline.expanded.insert(row.rank);
    app.select_rank(row.rank);
  }
  if (!over) return;
  ctx.tip("rank " + std::to_string(row.rank) + ". " + pace_and_waits(app, row.rank, pace) +
          "Click at the left to show its lanes, drag to move it.");
}

void draw_node_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      SpanPainter& painter) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const bool over = ctx.hovered(gutter);
  if (over) ctx.canvas.fill(gutter, c.raised);
  triangle(ctx, gutter, row.expanded);
  Rect text = gutter;
  text.take_left(22);
  const std::string count = std::to_string(row.ranks.size()) + (row.ranks.size() == 1 ? " rank" : " ranks");
  ctx.canvas.text_in(text.take_right(58), count, c.muted, Font::small, Align::right);
  ctx.canvas.text_in(text, row.given_name, c.text, Font::strong);
  if (row.expanded)
    ctx.canvas.horizontal(lanes.x, lanes.y + lanes.h / 2, lanes.w, c.line);
  else
    painter.heat(row.ranks, lanes);
  if (!over) return;
  ctx.tip("Ranks of " + row.given_name + ": " + numbers_text(row.ranks) + ". " +
          (row.expanded ? "Click to collapse them into their mean."
                        : "The colours are their mean. Click to show them."));
  if (ctx.pointer.pressed[0] && !app.timeline.closed_nodes.erase(row.given_name))
    app.timeline.closed_nodes.insert(row.given_name);
}

void draw_rank_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      const TimeScale& scale, const RankPaces& paces, bool clicked) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const bool over = ctx.hovered(gutter);
  if (over) ctx.canvas.fill(gutter, c.raised);
  triangle(ctx, gutter, row.expanded);
  const RankPace pace = paces.of(row.rank);
  const bool chosen = app.selection.kind == SelectionKind::rank && app.selection.rank == row.rank;
  Rect text = gutter;
  text.take_left(22);
  if (pace.busy_ns > 0) {
    const Quantity time = duration(pace.busy_ns);
    ctx.quantity(text.take_right(70), time.number, time.unit, 26,
                 pace.straggler() ? c.of(Meaning::trouble) : c.text);
  }
  if (pace.straggler())
    ctx.canvas.fill({gutter.right() - 3, gutter.y + 3, 3, gutter.h - 6}, c.of(Meaning::trouble));
  ctx.canvas.text_in(text, "rank " + std::to_string(row.rank), chosen ? c.accent : c.text, Font::strong);
  if (over) {
    ctx.tip(pace_and_waits(app, row.rank, pace) + "Clock error at most " +
            duration(clock_bound(app, row.rank).in_view_ns).text() + ". " +
            "Click the triangle to show or hide the lanes, the name to select; drag to move the rank.");
  }
  if (clicked) {
    if (ctx.pointer.x < gutter.x + 22 || chosen) {
      app.timeline.automatic = false;
      if (!app.timeline.expanded.erase(row.rank)) app.timeline.expanded.insert(row.rank);
    }
    app.select_rank(row.rank);
  }
  draw_left_out(ctx, row, lanes);
  if (!row.expanded) {
    SpanPainter(ctx, scale).rank_strip(row.rank, lanes);
  }
}

}  // namespace shardscope::gui
