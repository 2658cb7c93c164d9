#include "app/gui/views/relation_arrows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "app/store/lane.h"

namespace shardscope::gui {
namespace {

struct Point {
  float x = 0, y = 0;
};

bool is_span(const RelationEnd& end, store::LaneId lane, const store::Span& span) {
  return end.lane == lane && end.span.depth == span.depth && end.span.begin_ns == span.begin_ns;
}

/// The row of an end: its lane, the row of waits, or the overview of a rank with hidden lanes.
const TimelineRow* row_of(const TimelineRows& rows, const RelationEnd& end) {
  const TimelineRow* best = nullptr;
  for (const TimelineRow& row : rows.rows) {
    if (row.rank != end.lane.rank) continue;
    if (row.kind == RowKind::rank && !row.expanded) return &row;
    if (row.kind == RowKind::rank || row.lane() != end.lane) continue;
    const bool wait = store::is_wait(end.span.kind);
    if (row.kind == RowKind::waits ? wait : row.depth == end.span.depth) best = &row;
    if (best == &row && row.kind == RowKind::waits) return best;
  }
  return best;
}

void curve(Context& ctx, Point from, Point to, Rgb color, float thickness) {
  // Horizontal tangents; bends more where there is little room.
  const float bend = std::clamp(std::fabs(to.x - from.x) * 0.5F, 12.0F, 60.0F);
  std::array<ImVec2, 25> points{};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const float t = static_cast<float>(i) / static_cast<float>(points.size() - 1);
    const float u = 1 - t;
    points[i] = {u * u * u * from.x + 3 * u * u * t * (from.x + bend) + 3 * u * t * t * (to.x - bend) +
                     t * t * t * to.x,
                 u * u * u * from.y + 3 * u * u * t * from.y + 3 * u * t * t * to.y + t * t * t * to.y};
  }
  ctx.canvas.polyline(points.data(), static_cast<int>(points.size()), color, thickness);
  ctx.canvas.triangle(to.x - 6, to.y - 3.5F, to.x - 6, to.y + 3.5F, to.x, to.y, color);
}

void legend(Context& ctx, const Rect& lanes, bool gathers, bool gradients, const std::string& more) {
  const Palette& c = ctx.colors();
  struct Entry {
    bool shown;
    Meaning meaning;
    const char* text;
  };
  const std::array entries{Entry{gathers, Meaning::gather, "gather to its wait and module"},
                           Entry{gradients, Meaning::reduce, "gradients to reduction and optimizer"}};
  float width = 12;
  for (const Entry& entry : entries) {
    if (entry.shown) width += 36 + ctx.canvas.width(entry.text, Font::small);
  }
  if (!more.empty()) width += ctx.canvas.width(more, Font::small) + 12;
  if (width > lanes.w) return;
  Rect box{lanes.right() - width - 6, lanes.bottom() - 24, width, 20};
  ctx.canvas.fill(box, c.raised, 0.94F, 3);
  box.take_left(8);
  for (const Entry& entry : entries) {
    if (!entry.shown) continue;
    const Rect mark = box.take_left(18);
    ctx.canvas.line(mark.x, mark.y + 10, mark.x + 14, mark.y + 10, c.of(entry.meaning), 1, 1.5F);
    ctx.canvas.triangle(mark.x + 10, mark.y + 7, mark.x + 10, mark.y + 13, mark.x + 15, mark.y + 10,
                        c.of(entry.meaning));
    const float text = ctx.canvas.width(entry.text, Font::small) + 1;
    ctx.canvas.text_in(box.take_left(text), entry.text, c.text, Font::small);
    box.take_left(17);
  }
  if (!more.empty()) ctx.canvas.text_in(box, more, c.muted, Font::small);
}

}  // namespace

void draw_relations(Context& ctx, const TimelineRows& rows, const Rect& lanes, const TimeScale& scale,
                    const std::optional<HoveredSpan>& hovered) {
  const AppState& app = ctx.app;
  const Selection& selected = app.selection;
  const bool of_selection = selected.span.has_value();
  if (!of_selection && !hovered) return;
  const store::LaneId lane = of_selection ? selected.lane : hovered->lane;
  const store::Span span = of_selection ? *selected.span : hovered->span;
  const Relations& relations = app.relations.of(app.store(), app.run->index(), lane, span);
  if (!relations.read) ctx.moving = true;
  if (relations.list.empty() && relations.all) return;
  const Palette& c = ctx.colors();
  const Clip clip(ctx.canvas, lanes);
  bool gathers = false;
  bool gradients = false;
  const auto place = [&](const RelationEnd& end) -> std::optional<Point> {
    const TimelineRow* const row = row_of(rows, end);
    if (row == nullptr) return std::nullopt;
    return Point{scale.x_of(end.at_ns), lanes.y + 4 + row->y + row->height / 2 - app.timeline_scroll};
  };
  for (const Relation& relation : relations.list) {
    const auto from = place(relation.from);
    const auto to = place(relation.to);
    if (!from || !to) continue;
    const bool gather = is_gather(relation.kind);
    (gather ? gathers : gradients) = true;
    const bool over = hovered && (is_span(relation.from, hovered->lane, hovered->span) ||
                                  is_span(relation.to, hovered->lane, hovered->span));
    const Rgb color = c.of(gather ? Meaning::gather : Meaning::reduce);
    curve(ctx, *from, *to, over ? mix(color, c.text, 0.35F) : color, over && of_selection ? 2.5F : 1.3F);
    if (!over) continue;
    for (const RelationEnd* end : {&relation.from, &relation.to}) {
      const TimelineRow* const row = row_of(rows, *end);
      const float x0 = std::max(lanes.x, scale.x_of(end->span.begin_ns));
      const float x1 = std::min(lanes.right(), std::max(x0 + 2, scale.x_of(end->span.end_ns)));
      ctx.canvas.outline({x0, lanes.y + 4 + row->y - app.timeline_scroll, x1 - x0, row->height}, c.text,
                         0.9F);
    }
  }
  const std::string more = !relations.all  ? "may be incomplete: too many events to search"
                           : relations.cut ? "the first " + std::to_string(kMostRelations)
                                           : std::string();
  if (gathers || gradients || !relations.all) legend(ctx, lanes, gathers, gradients, more);
}

}  // namespace shardscope::gui
