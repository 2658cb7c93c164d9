// Timeline: lanes of ranks and streams over time.
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/measured_figures.h"
#include "app/gui/model/names.h"
#include "app/gui/model/range_grip.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/model/span_text.h"
#include "app/gui/views/hit_marks.h"
#include "app/gui/views/lane_menu.h"
#include "app/gui/views/moment_marks.h"
#include "app/gui/views/note_marks.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/rank_drag.h"
#include "app/gui/views/rank_header.h"
#include "app/gui/views/relation_arrows.h"
#include "app/gui/views/span_menu.h"
#include "app/gui/views/span_painter.h"
#include "app/gui/views/timeline_frames.h"
#include "app/gui/views/timeline_keys.h"
#include "app/gui/views/timeline_marks.h"
#include "app/gui/views/timeline_menu.h"
#include "app/gui/views/track_rows.h"
#include "app/gui/views/view.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

constexpr float kGutter = 156;
constexpr float kRuler = 22;
constexpr double kWheelZoom = 0.82, kFastWheelZoom = 0.5;
/// Range around the pointer for the tooltip of folded spans, in pixels.
constexpr double kFoldPixels = 4;

/// The wheel scrolls instead of zooming.
bool scrolls(const Pointer& pointer) { return pointer.ctrl && pointer.shift; }

class TimelineView final : public View {
 public:
  std::string_view name() const override { return "timeline"; }
  std::string_view title() const override { return "Timeline"; }
  bool analysed() const override { return true; }
  void header(Context& ctx, Rect& room) override { timeline_header(ctx, room); }
  void draw(Context& ctx, Rect room) override;

 private:
  void ruler(Context& ctx, const Rect& rect, const TimeScale& scale);
  void marks(Context& ctx, const Rect& rect, const TimeScale& scale);
  void navigate(Context& ctx, const Rect& lanes, const TimeScale& scale);

  void measure_to(Context& ctx, const TimeScale& scale);
  /// The end of the measured range under the pointer, within `rect`.
  [[nodiscard]] Grip measured_grip(const Context& ctx, const Rect& rect, const TimeScale& scale) const;
  /// Begins a drag: with Shift, or at an end of the measured range, it measures.
  void begin_measure(const Context& ctx, Grip grip, bool anew, const TimeScale& scale);
  /// Draws the measured range and its figures.
  void measured(Context& ctx, const Rect& lanes, const TimeScale& scale);
  void scroll_to_rank(Context& ctx, const TimelineRows& rows, float height);

  /// Draws a row that is not a lane; false for a lane.
  bool other_row(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane,
                 SpanPainter& painter, const TimeScale& scale);

  TrackRows tracks_;
  RankDrag drag_;
  TimelineKeys keys_;
  TimelineFrames frames_;
  std::optional<store::Span> hovered_;
  TimelineRow hovered_row_;
  int pan_owner_ = 0, zoom_owner_ = 0, ruler_owner_ = 0;
  std::optional<std::int64_t> zoom_from_, measure_from_;
  bool resizes_ = false;  ///< measure_from_ is the fixed end of an existing range
  MeasuredFigures figures_;
};

void TimelineView::ruler(Context& ctx, const Rect& rect, const TimeScale& scale) {
  const Palette& c = ctx.colors();
  const Clip clip(ctx.canvas, rect);
  for (const Tick& tick : time_ticks(scale, 110)) {
    const float x = scale.x_of(tick.at_ns);
    ctx.canvas.vertical(x, rect.bottom() - 5, 5, c.muted, 0.6F);
    if (x + 4 + ctx.canvas.width(tick.label, Font::mono_small) <= rect.right())
      ctx.canvas.text(std::floor(x) + 4, rect.y + 3, tick.label, c.muted, Font::mono_small);
  }
  ctx.canvas.horizontal(rect.x, rect.bottom() - 1, rect.w, c.line);
  // A note at a moment is drawn above it and receives the click.
  const bool on_flag = !ctx.app.timeline.view.hides(ItemClass::notes) && draw_note_flags(ctx, rect, scale);
  const bool on_moment =
      !ctx.app.timeline.view.hides(ItemClass::marks) && draw_moments(ctx, rect, scale, !on_flag);
  if (on_flag || on_moment) return;
  if (ctx.hovered(rect)) {
    ctx.app.hover_next_ns = scale.time_of(ctx.pointer.x);
    ctx.tip(timestamp(scale.time_of(ctx.pointer.x), static_cast<std::int64_t>(scale.ns_per_pixel())) +
            "\nClick: look at this time in every panel. Drag: measure.");
  }
  const Grip grip = measured_grip(ctx, rect, scale);
  if (grip != Grip::none || (ctx.ui.captured == &ruler_owner_ && resizes_))
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  switch (ctx.drag(&ruler_owner_, rect, 0)) {
    case Context::Drag::begun:
      begin_measure(ctx, grip, true, scale);
      break;
    case Context::Drag::going:
      measure_to(ctx, scale);
      break;
    case Context::Drag::clicked:
      measure_from_.reset();
      ctx.app.set_now(scale.time_of(ctx.pointer.x));
      break;
    case Context::Drag::dropped:
      measure_from_.reset();
      break;
    default:
      break;
  }
  if (ctx.app.measured) {
    const float x0 = std::max(rect.x, scale.x_of(ctx.app.measured->begin_ns));
    const float x1 = std::min(rect.right(), scale.x_of(ctx.app.measured->end_ns));
    if (x1 > x0) ctx.canvas.fill({x0, rect.bottom() - 4, x1 - x0, 4}, c.accent);
  }
}

Grip TimelineView::measured_grip(const Context& ctx, const Rect& rect, const TimeScale& scale) const {
  if (!ctx.app.measured || !ctx.hovered(rect)) return Grip::none;
  const Grip grip =
      grip_at(ctx.pointer.x, scale.x_of(ctx.app.measured->begin_ns), scale.x_of(ctx.app.measured->end_ns));
  return grip == Grip::middle ? Grip::none : grip;
}

void TimelineView::begin_measure(const Context& ctx, Grip grip, bool anew, const TimeScale& scale) {
  if (!ctx.pointer.pressed[0]) return;
  measure_from_.reset();
  resizes_ = grip != Grip::none;
  if (resizes_)
    measure_from_ = fixed_end(*ctx.app.measured, grip);
  else if (anew)
    measure_from_ = scale.time_of(ctx.pointer.x);
}

/// Measures from the begin of the drag to the pointer.
void TimelineView::measure_to(Context& ctx, const TimeScale& scale) {
  if (!measure_from_) return;
  const std::int64_t to = scale.time_of(ctx.pointer.x);
  if (to != *measure_from_) ctx.app.measured = range_between(*measure_from_, to);
}

void TimelineView::marks(Context& ctx, const Rect& rect, const TimeScale& scale) {
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  if (app.cursor_ns && scale.range.contains(*app.cursor_ns)) {
    const float x = scale.x_of(*app.cursor_ns);
    ctx.canvas.vertical(x, rect.y, rect.h, c.accent, 0.9F, 1);
    ctx.canvas.triangle(x - 5, rect.y, x + 5, rect.y, x, rect.y + 7, c.accent);
  } else if (app.run->live() && scale.range.contains(app.store().end_ns())) {
    ctx.canvas.vertical(scale.x_of(app.store().end_ns()), rect.y, rect.h, c.accent, 0.5F, 1);
  }
  if (ctx.under_pointer(rect)) ctx.app.hover_next_ns = scale.time_of(ctx.pointer.x);
  if (app.hover_ns && scale.range.contains(*app.hover_ns))
    ctx.canvas.vertical(scale.x_of(*app.hover_ns), rect.y, rect.h, c.muted, 0.5F);
  if (!app.timeline.view.hides(ItemClass::notes)) draw_note_lines(ctx, rect, scale);
  measured(ctx, rect, scale);
  if (zoom_from_) {
    const float x0 = scale.x_of(*zoom_from_);
    const float x1 = ctx.pointer.x;
    const Rect range{std::min(x0, x1), rect.y, std::fabs(x1 - x0), rect.h};
    ctx.canvas.fill(range, c.accent, 0.18F);
    const std::int64_t length = std::abs(scale.time_of(x1) - *zoom_from_);
    ctx.canvas.text_in({range.x, rect.y + 24, std::max(range.w, 80.0F), 18}, duration(length).text(), c.text,
                       Font::mono, Align::centre);
  }
}

void TimelineView::measured(Context& ctx, const Rect& lanes, const TimeScale& scale) {
  const AppState& app = ctx.app;
  if (!app.measured) return;
  const Palette& c = ctx.colors();
  const float x0 = std::clamp(scale.x_of(app.measured->begin_ns), lanes.x, lanes.right());
  const float x1 = std::clamp(scale.x_of(app.measured->end_ns), lanes.x, lanes.right());
  if (x1 <= lanes.x || x0 >= lanes.right()) return;
  ctx.canvas.fill({x0, lanes.y, x1 - x0, lanes.h}, c.accent, 0.10F);
  ctx.canvas.vertical(x0, lanes.y, lanes.h, c.accent, 0.9F);
  ctx.canvas.vertical(x1 - 1, lanes.y, lanes.h, c.accent, 0.9F);
  const std::string text = measured_text(app.store(), app.measured->begin_ns, app.measured->end_ns);
  const auto figures = figures_.of(app, *app.measured);
  if (figures_.incomplete()) ctx.moving = true;
  const std::string second = figures ? text_of(*figures) : std::string();
  const float width =
      std::max(ctx.canvas.width(text, Font::mono_small), ctx.canvas.width(second, Font::mono_small)) + 12;
  const float x = std::clamp((x0 + x1 - width) / 2, lanes.x, std::max(lanes.x, lanes.right() - width));
  Rect box{x, lanes.y + 4, width, second.empty() ? 18.0F : 34.0F};
  ctx.canvas.fill(box, c.raised, 0.95F, 3);
  ctx.canvas.outline(box, c.accent, 1, 1, 3);
  ctx.canvas.text_in(box.take_top(18), text, c.text, Font::mono_small, Align::centre);
  if (!second.empty()) ctx.canvas.text_in(box.take_top(14), second, c.muted, Font::mono_small, Align::centre);
}

void TimelineView::scroll_to_rank(Context& ctx, const TimelineRows& rows, float height) {
  const auto wanted = std::exchange(ctx.app.rank_to_show, std::nullopt);
  if (!wanted) return;
  float top = -1;
  float bottom = -1;
  for (const TimelineRow& row : rows.rows) {
    if (row.rank != *wanted || row.kind == RowKind::status) continue;
    if (top < 0) top = row.y;
    bottom = row.y + row.height;
  }
  float& scroll = ctx.app.timeline_scroll;
  if (top < 0 || (top >= scroll && bottom <= scroll + height)) return;
  scroll = top;
}

void TimelineView::navigate(Context& ctx, const Rect& lanes, const TimeScale& scale) {
  AppState& app = ctx.app;
  const std::int64_t limit = app.store().end_ns();
  if (ctx.hovered(lanes) && ctx.pointer.wheel != 0 && !scrolls(ctx.pointer)) {
    const double strength = ctx.pointer.ctrl ? 0.95 : ctx.pointer.shift ? kFastWheelZoom : kWheelZoom;
    app.zoom(std::pow(strength, static_cast<double>(ctx.pointer.wheel)), scale.time_of(ctx.pointer.x));
    ctx.pointer.wheel = 0;
  }
  if (ctx.hovered(lanes) && ctx.pointer.wheel_sideways != 0) {
    app.time.pan(static_cast<std::int64_t>(-static_cast<double>(ctx.pointer.wheel_sideways) * 60 *
                                           scale.ns_per_pixel()),
                 limit);
    app.follow = false;
  }
  const Grip grip = measured_grip(ctx, lanes, scale);
  if (grip != Grip::none || (ctx.ui.captured == &pan_owner_ && resizes_ && measure_from_))
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  switch (ctx.drag(&pan_owner_, lanes, 0)) {
    case Context::Drag::begun:
      begin_measure(ctx, grip, ctx.pointer.shift, scale);
      break;
    case Context::Drag::going:
      if (measure_from_) {
        measure_to(ctx, scale);
        break;
      }
      app.timeline_scroll -= ctx.pointer.dy;
      if (ctx.pointer.dx == 0) break;
      app.time.pan(static_cast<std::int64_t>(-static_cast<double>(ctx.pointer.dx) * scale.ns_per_pixel()),
                   limit);
      app.follow = false;
      break;
    case Context::Drag::dropped:
      measure_from_.reset();
      break;
    case Context::Drag::clicked:
      measure_from_.reset();
      app.set_now(scale.time_of(ctx.pointer.x));
      if (hovered_)
        app.select_span(hovered_row_.lane(), *hovered_);
      else if (const auto& band = tracks_.hovered())
        app.select_param(band->param, band->rank);
      else
        app.clear_selection();
      break;
    default:
      break;
  }
  if (ctx.pointer.double_click && lanes.contains(ctx.pointer.x, ctx.pointer.y) && hovered_) {
    zoom_to_span(app, hovered_row_.lane(), *hovered_);
  }
  switch (ctx.drag(&zoom_owner_, lanes, 2)) {
    case Context::Drag::begun:
      if (!zoom_from_) zoom_from_ = scale.time_of(ctx.pointer.x);
      break;
    case Context::Drag::dropped: {
      const std::int64_t to = scale.time_of(ctx.pointer.x);
      if (zoom_from_) {
        const TimeRange over = range_between(*zoom_from_, to);
        app.time.go(ctx.pointer.ctrl ? zoomed_out(app.time.range(), over) : over, limit);
      }
      app.follow = false;
      zoom_from_.reset();
      break;
    }
    case Context::Drag::clicked:
      zoom_from_.reset();
      if (hovered_) zoom_to_span(app, hovered_row_.lane(), *hovered_);
      break;
    default:
      break;
  }
  // At the release: ImGui closes popups at a press, including one opened by it.
  if (ctx.hovered(lanes) && ctx.pointer.released[1] && hovered_)
    open_span_menu(ctx, hovered_row_.lane(), *hovered_);
}

bool TimelineView::other_row(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane,
                             SpanPainter& painter, const TimeScale& scale) {
  switch (row.kind) {
    case RowKind::node:
      draw_node_header(ctx, row, gutter, lane, painter);
      return true;
    case RowKind::param:
      tracks_.param_header(ctx, row, gutter, lane);
      return true;
    case RowKind::counter:
      tracks_.curve(ctx, row, gutter, lane, scale);
      break;
    case RowKind::status:
      tracks_.band(ctx, row, gutter, lane, scale);
      break;
    default:
      return false;
  }
  draw_pauses(ctx, ctx.app.store(), row.rank, lane, scale);
  draw_gaps(ctx, row.rank, lane, scale);
  return true;
}

void TimelineView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  if (app.store().ranks().empty() || app.store().end_ns() <= 0) {
    ctx.empty(room, app.run->live() ? "Waiting for the first events" : "No events in this recording",
              app.run->live() ? "Lanes appear when a rank has connected and started its first step."
                              : "The file holds no spans of any rank.");
    return;
  }
  Rect head = room.take_top(kRuler);
  const Rect corner = head.take_left(kGutter);
  app.run->look_at(app.time.range().begin_ns, app.time.range().end_ns);
  const TimeScale scale{app.time.range(), head.x, head.w - 8};
  ruler(ctx, head, scale);
  // Wait for a complete step: before that some lanes that need room are missing.
  const auto steps = app.store().steps();
  const bool settled = !app.run->live() || (!steps.empty() && steps.front().end_ns != store::kOpen);
  arrange_ranks(app);
  filter_strip(ctx, room);
  frames_.strip(ctx, room, kGutter, scale);
  resolve_height(app.store(), app.timeline, room.h - 8);
  if (app.timeline.automatic) expand_while_room(app.store(), app.timeline, settled ? room.h - 8 : 0);
  const TimelineRows rows = layout_rows(app.store(), app.timeline);
  scroll_to_rank(ctx, rows, room.h - 8);
  if (scrolls(ctx.pointer) || ctx.pointer.x < room.x + kGutter) {
    ctx.scroll("rows", room, rows.height + 8, app.timeline_scroll);
  } else {
    const float wheel = ctx.pointer.wheel;
    ctx.pointer.wheel = 0;
    ctx.scroll("rows", room, rows.height + 8, app.timeline_scroll);
    ctx.pointer.wheel = wheel;
  }
  const Rect headers{room.x, room.y, kGutter - 4, room.h};
  drag_.look(ctx, rows, headers, room.y + 4 - app.timeline_scroll);
  hovered_.reset();
  bool folded = false;
  const bool marked = !app.timeline.view.hides(ItemClass::marks);
  const Rect lanes{room.x + kGutter, room.y, room.w - kGutter - 8, room.h};
  const RankPaces paces(app);
  {
    const Clip clip(ctx.canvas, room);
    for (const store::StepRow& step : app.store().steps()) {
      if (step.begin_ns < scale.range.begin_ns || step.begin_ns > scale.range.end_ns) continue;
      ctx.canvas.vertical(scale.x_of(step.begin_ns), room.y, room.h, c.line, 1);
    }
    frames_.lines(ctx, lanes, scale);
    SpanPainter painter(ctx, scale);
    tracks_.begin_frame(ctx);
    const float top = app.timeline_scroll;
    const auto [first, last] = rows.between(top - 4, top + room.h);
    const Clip lane_clip(ctx.canvas, {room.x, room.y, room.w - 8, room.h});
    for (std::size_t i = first; i < last; ++i) {
      const TimelineRow& row = rows.rows[i];
      const float y = std::floor(room.y + 4 + row.y - top);
      const Rect gutter{room.x, y, kGutter - 4, row.height};
      const Rect lane{lanes.x, y, lanes.w, row.height};
      if (other_row(ctx, row, gutter, lane, painter, scale)) continue;
      if (row.heat) {
        draw_heat_row(ctx, row, gutter, lane, painter, paces, drag_.clicked() == row.rank);
        if (ctx.hovered(gutter) && ctx.pointer.released[1]) open_rank_menu(ctx, row.rank);
      } else if (row.kind == RowKind::rank) {
        if (i != 0) ctx.canvas.horizontal(room.x, y - 3, room.w, c.line);
        draw_rank_header(ctx, row, gutter, lane, scale, paces, drag_.clicked() == row.rank);
        if (ctx.hovered(gutter) && ctx.pointer.released[1]) open_rank_menu(ctx, row.rank);
      } else {
        draw_lane_name(ctx, row, gutter);
        const Clip inner(ctx.canvas, lane);
        if (const auto found = painter.lane(row, lane)) {
          hovered_ = found;
          hovered_row_ = row;
          folded = painter.folded();
        } else if (ev::is_gpu_stream(row.lane().stream) && ctx.hovered(lane)) {
          const std::string idle = idle_text(app, row.lane(), scale.time_of(ctx.pointer.x));
          if (!idle.empty()) ctx.tip(idle);
        }
        if (row.kind == RowKind::reduce && row.depth == 0 && draw_flushes(ctx, row.rank, lane, scale))
          hovered_.reset();
      }
      if (marked) mark_hits(ctx, row, lane, scale);
      draw_pauses(ctx, app.store(), row.rank, lane, scale);
      draw_gaps(ctx, row.rank, lane, scale);
      draw_rank_end(ctx, row, lane, scale);
    }
    drag_.draw(ctx, room, headers, room.y + 4 - top);
  }
  // The frame's reading time was not enough; the next frames continue.
  if (app.store().wants_more() || app.run->heat().behind() || app.run->tracks().behind()) {
    ctx.canvas.text_in(corner.inset(8, 0), "coarse, refining", c.muted, Font::small);
  } else if (const auto step = paces.step()) {
    // Heads the times beside the ranks.
    const Rect place = corner.inset(8, 0);
    std::string heading = "compute time, step " + std::to_string(*step);
    if (ctx.canvas.width(heading, Font::small) > place.w) heading = "compute, step " + std::to_string(*step);
    ctx.canvas.text_in(place, heading, c.muted, Font::small, Align::right);
  }
  ctx.canvas.vertical(lanes.x - 2, room.y, room.h, c.line);
  if (marked) draw_arrivals(ctx, rows, lanes, scale);
  if (marked)
    draw_relations(ctx, rows, lanes, scale,
                   hovered_ ? std::optional(HoveredSpan{hovered_row_.lane(), *hovered_}) : std::nullopt);
  navigate(ctx, lanes, scale);
  {
    const Clip clip(ctx.canvas, lanes);
    marks(ctx, lanes, scale);
  }
  keys_.look(ctx, rows, room, lanes, kGutter, std::floor(room.y + 4 - app.timeline_scroll), scale);
  const std::optional<store::Span> like = folded || ctx.ui.captured != nullptr ? std::nullopt : hovered_;
  if (like.has_value() != app.hovered_span.has_value() || (like && !alike(*like, *app.hovered_span)))
    ctx.moving = true;  // spans with its name are highlighted in the next frame
  app.hovered_span = like;
  if (!hovered_ || ctx.ui.captured != nullptr) return;
  if (folded)
    ctx.tip(fold_text(app.store(), hovered_row_.lane(), hovered_row_.depth, scale.time_of(ctx.pointer.x),
                      static_cast<std::int64_t>(scale.ns_per_pixel() * kFoldPixels)));
  else
    ctx.tip(describe_span(app, hovered_row_.lane(), *hovered_));
}

}  // namespace

std::unique_ptr<View> make_timeline_view() { return std::make_unique<TimelineView>(); }

}  // namespace shardscope::gui
