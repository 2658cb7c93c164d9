#include "app/gui/views/track_rows.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/format.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/model/sampled_curves.h"
#include "app/gui/views/memory_legend.h"
#include "app/store/span_time.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

constexpr float kCurveColumn = 2;  ///< width of a curve's column, in points

Meaning meaning_of_row(RowCounter counter) {
  switch (counter) {
    case RowCounter::live_elements:
    case RowCounter::in_flight:
      return Meaning::gather;
    case RowCounter::memory:
      return Meaning::compute;
    case RowCounter::outside:
      return Meaning::neutral;
    case RowCounter::loss:
    case RowCounter::step_time:
    case RowCounter::throughput:
    case RowCounter::gradient_norm:
    case RowCounter::learning_rate:
    case RowCounter::loss_scale:
      break;
  }
  return Meaning::neutral;
}

/// Maps values from `low` to `high` to a rectangle.
struct Level {
  Rect room;
  double low, high;
  [[nodiscard]] float y(double value) const {
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    return room.bottom() - static_cast<float>(std::clamp(share, 0.0, 1.0)) * room.h;
  }
};

/// A line with the area below filled; similar neighbours are merged into one rectangle.
void draw_line(Context& ctx, const Level& level, const std::vector<ColumnRange>& columns, Rgb color,
               bool filled) {
  const Rect& room = level.room;
  float before = -1;
  for (std::size_t i = 0; i < columns.size();) {
    const ColumnRange& column = columns[i];
    std::size_t next = i + 1;
    if (!column.any) {
      before = -1;
      i = next;
      continue;
    }
    while (next < columns.size() && columns[next].any && columns[next].low == column.low &&
           columns[next].high == column.high)
      ++next;
    const float x0 = room.x + static_cast<float>(i) * kCurveColumn;
    const float x1 = std::min(room.right(), room.x + static_cast<float>(next) * kCurveColumn);
    const float top = level.y(column.high);
    const float low = level.y(column.low);
    if (filled) ctx.canvas.fill({x0, top, x1 - x0, room.bottom() - top}, color, 0.28F);
    // From the previous level, to join the steps.
    const float from = before < 0 ? top : std::min(top, before);
    const float to = std::max(low, before < 0 ? low : std::max(before, top));
    ctx.canvas.fill({x0, from - 0.75F, 1.5F, to - from + 1.5F}, color);
    ctx.canvas.fill({x0, top - 0.75F, x1 - x0, 1.5F}, color);
    before = low;
    i = next;
  }
}

void draw_stack(Context& ctx, const Level& level, const RowCurve& curve) {
  const Rect& room = level.room;
  const auto known = static_cast<std::size_t>(std::ranges::count(curve.columns, true, &ColumnRange::any));
  for (const StackRun& run :
       stack_runs(std::span(curve.samples).first(std::min(known, curve.samples.size())))) {
    const float x0 = room.x + static_cast<float>(run.first) * kCurveColumn;
    const float x1 = std::min(room.right(), room.x + static_cast<float>(run.last) * kCurveColumn);
    double below = 0;
    for (const ev::MemoryCategory category : stack_order()) {
      const auto value =
          static_cast<double>(std::max<std::int64_t>(0, run.bytes[static_cast<std::size_t>(category)]));
      if (value <= 0) continue;
      const float y1 = level.y(below);
      const float y0 = level.y(below += value);
      ctx.canvas.fill({x0, y0, x1 - x0, y1 - y0}, shade(ctx.colors(), category), 0.9F);
    }
  }
}

plan::ParamStatus status_of(const StatusPiece& piece) {
  return static_cast<plan::ParamStatus>(ev::status_of(piece.state.status));
}

/// Drawn as in the partition map: filled, hatched, empty.
void draw_status(Context& ctx, const Rect& box, const StatusPiece& piece) {
  const Palette& c = ctx.colors();
  if (!piece.known) {
    ctx.canvas.hatch(box, c.muted, 0.4F, 8);
    return;
  }
  switch (status_of(piece)) {
    case plan::ParamStatus::available:
      ctx.canvas.fill(box, c.of(Meaning::gather));
      return;
    case plan::ParamStatus::in_flight:
      ctx.canvas.fill(box, c.of(Meaning::gather), 0.25F);
      ctx.canvas.hatch(box, c.of(Meaning::gather), 1, 4);
      return;
    case plan::ParamStatus::not_available:
      ctx.canvas.horizontal(box.x, box.y + std::floor(box.h / 2), box.w, c.line);
      return;
  }
}

}  // namespace

void TrackRows::begin_frame(Context& ctx) {
  const auto close = [](double a, double b) {
    return std::fabs(a - b) <= 1e-9 * std::max(1.0, std::fabs(a));
  };
  const auto keep = [&](const Top& seen, Top& shown) {
    if (!seen.any) return;
    if (!close(seen.high, shown.high) || !close(seen.low, shown.low)) ctx.moving = true;
    shown = seen;
  };
  for (std::size_t i = 0; i < seen_.counters.size(); ++i) keep(seen_.counters[i], shown_.counters[i]);
  for (const auto& [name, seen] : seen_.sampled) keep(seen, shown_.sampled[name]);
  seen_ = {};
  hovered_.reset();
}

void TrackRows::curve(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane,
                      const TimeScale& scale) {
  const Palette& c = ctx.colors();
  const auto columns = static_cast<std::size_t>(std::max(1.0F, std::floor(lane.w / kCurveColumn)));
  const TimeRange range{scale.range.begin_ns,
                        scale.time_of(scale.left + static_cast<float>(columns) * kCurveColumn)};
  std::optional<SampledCounter> sampled;
  if (!row.sampled.empty())
    sampled = sampled_counter(ctx.app, row.rank, row.sampled)
                  .value_or(SampledCounter{row.sampled, "", false, false});
  const RowCurve curve = sampled ? sampled_curve(ctx.app, row.sampled, row.rank, range, columns)
                                 : row_curve(ctx.app, row.counter, row.rank, range, columns);
  const auto value = [&](double of) {
    return sampled ? value_text(*sampled, of) : value_text(row.counter, of);
  };
  // The scale of a loss begins at its lowest value; any other at 0, or below it if values are negative.
  const bool loss = !sampled && row.counter == RowCounter::loss;
  const double low = loss ? curve.lowest() : sampled ? std::min(0.0, curve.lowest()) : 0;
  Top& seen = seen_.of(row);
  if (curve.highest() > 0 || low < 0) {
    seen.low = seen.any ? std::min(seen.low, low) : low;
    seen.high = seen.any ? std::max(seen.high, curve.highest()) : curve.highest();
    seen.any = true;
  }
  const Top& kept = shown_.of(row);
  const Top& top = kept.any ? kept : seen;
  Rect text{gutter.x + 22, gutter.y + 2, gutter.w - 26, gutter.h - 4};
  ctx.canvas.text_in(text.take_top(text.h / 2), row.label(), c.text, Font::small);
  const std::string span = loss && top.any ? decimal(top.low, 3) + " to " + decimal(top.high, 3)
                           : top.low < 0   ? value(top.low) + " to " + value(top.high)
                                           : "to " + value(top.high);
  if (top.any) ctx.canvas.text_in(text, span, c.muted, Font::mono_small);
  ctx.canvas.horizontal(lane.x, lane.bottom() - 1, lane.w, c.line);
  const bool over = ctx.hovered({gutter.x, gutter.y, lane.right() - gutter.x, gutter.h});
  if (!curve.instead.empty()) {
    ctx.canvas.text_in(lane.inset(6, 0), curve.instead, c.muted, Font::small);
  } else if (curve.columns.empty()) {
    ctx.canvas.text_in(lane.inset(6, 0), "reading", c.muted, Font::small);
  } else {
    const Clip clip(ctx.canvas, lane);
    const bool from_zero = !loss && top.low >= 0;
    const Level level{
        {lane.x, lane.y + 3, lane.w, lane.h - 4}, loss ? top.low : std::min(0.0, top.low), top.high};
    if (!sampled && row.counter == RowCounter::memory)
      draw_stack(ctx, level, curve);
    else
      draw_line(ctx, level, curve.columns,
                sampled || row.counter >= RowCounter::loss ? c.text : c.of(meaning_of_row(row.counter)),
                from_zero);
  }
  if (!over || ctx.ui.captured != nullptr) return;
  if (ctx.pointer.x < lane.x) {
    ctx.tip((sampled ? sampled->name + ". " + meaning_text(*sampled) : meaning_text(row.counter)) +
            std::string(". Rows of this kind have one scale."));
    return;
  }
  const std::int64_t at_ns = scale.time_of(ctx.pointer.x);
  ctx.tip(sampled ? tip_of(*sampled, row.rank, curve, range, at_ns)
                  : tip_of(ctx.app, row.counter, row.rank, curve, range, at_ns));
}

void TrackRows::param_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const std::string name = param_name(app.store(), row.param);
  const Rect close{gutter.right() - 20, gutter.y, 20, gutter.h};
  const Rect text{gutter.x + 22, gutter.y, close.x - gutter.x - 22, gutter.h};
  ctx.canvas.text_in(text, ctx.canvas.fitting_path(text.w, name, Font::strong),
                     app.selected(row.param) ? c.accent : c.text, Font::strong);
  ctx.canvas.text_in(lane.inset(6, 0), name, c.muted, Font::small);
  const bool over_close = ctx.hovered(close);
  ctx.canvas.text_in(close, "\u00d7", over_close ? c.accent : c.muted, Font::body, Align::centre);
  if (over_close) ctx.tip("Do not show this parameter on the timeline");
  if (ctx.clicked(close)) {
    unfollow_param(app.timeline, row.param);
    return;
  }
  if (ctx.hovered({text.x, text.y, lane.right() - text.x, text.h})) {
    ctx.tip(name +
            ": where it is on every rank over time. Filled: available, hatched: in flight, line: not "
            "available. Click to select it.");
    if (ctx.pointer.pressed[0]) app.select_param(row.param, app.memory_rank);
  }
}

void TrackRows::band(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lane,
                     const TimeScale& scale) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const bool low = row.height < kBandHeight;
  const Rect whole{gutter.x, gutter.y, lane.right() - gutter.x, row.height + kLaneGap};
  const bool over = ctx.under_pointer(whole);
  if (!low || over)
    ctx.canvas.text_in({gutter.x + 22, gutter.y - 4, gutter.w - 26, gutter.h + 8},
                       "rank " + std::to_string(row.rank), over ? c.text : c.muted, Font::mono_small);
  const RankTrack& track = app.run->tracks().of(app.store(), row.rank, scale.range, wanted_of(app.timeline));
  if (track.state == RankTrack::State::too_much) {
    if (!low)
      ctx.canvas.text_in({lane.x + 6, lane.y - 4, lane.w, lane.h + 8}, too_much_text(), c.muted, Font::small);
    return;
  }
  const auto found = track.status.find(row.param);
  if (found == track.status.end()) return;
  const std::vector<StatusPiece>& pieces = found->second;
  const std::int64_t until = std::min(track.range.end_ns, store::known_until(app.store(), row.rank));
  const Clip clip(ctx.canvas, lane);
  auto piece = std::ranges::upper_bound(pieces, scale.range.begin_ns, {}, &StatusPiece::begin_ns);
  if (piece != pieces.begin()) --piece;
  float painted_to = lane.x - 1;
  for (; piece != pieces.end() && piece->begin_ns < scale.range.end_ns; ++piece) {
    const auto next = piece + 1;
    const std::int64_t end = next == pieces.end() ? until : std::min(until, next->begin_ns);
    const float x0 = std::max({lane.x, scale.x_of(piece->begin_ns), painted_to});
    float x1 = std::min(lane.right(), scale.x_of(end));
    // Short pieces, except not available ones, are at least a point wide, to be visible.
    const bool brief = status_of(*piece) != plan::ParamStatus::not_available;
    if (brief) x1 = std::max(x1, std::min(lane.right(), x0 + 1));
    if (x1 <= x0) continue;
    draw_status(ctx, {x0, lane.y, x1 - x0, lane.h}, *piece);
    painted_to = brief ? std::floor(x1) : x0;
  }
  if (!over) return;
  if (ctx.pointer.x >= lane.x) hovered_ = Band{row.param, row.rank};
  ctx.canvas.outline({lane.x, lane.y - 1, lane.w, lane.h + 2}, c.text, 0.5F);
  if (ctx.ui.captured == nullptr)
    ctx.tip(ctx.pointer.x < lane.x
                ? "rank " + std::to_string(row.rank) + ". Click to select the parameter on it."
                : status_tip(app, row.param, row.rank, pieces, scale.time_of(ctx.pointer.x)) +
                      "\nClick: look at this time in every panel.");
  if (ctx.pointer.pressed[0] && ctx.hovered({gutter.x, gutter.y, gutter.w, whole.h}))
    app.select_param(row.param, row.rank);
}

}  // namespace shardscope::gui
