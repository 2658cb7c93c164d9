#include "app/gui/views/plots.h"

#include <algorithm>
#include <cmath>

#include "app/gui/model/format.h"

namespace shardscope::gui {

int plot_series(Context& ctx, Rect rect, const SeriesPlot& series) {
  const Palette& c = ctx.colors();
  Rect head = rect.take_top(22);
  double last = NAN;
  double low = INFINITY;
  double high = -INFINITY;
  for (const double value : series.values) {
    if (!std::isfinite(value)) continue;
    last = value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const std::string last_text = decimal(last, series.digits) + (series.unit.empty() ? "" : " " + series.unit);
  ctx.canvas.text_in(head.take_right(std::min(head.w * 0.6F, ctx.canvas.width(last_text, Font::mono) + 1)),
                     last_text, c.text, Font::mono, Align::right);
  ctx.canvas.text_in(head, series.title, c.muted, Font::small);
  if (!std::isfinite(low)) {
    ctx.canvas.text_in(rect, "no values yet", c.muted, Font::small, Align::centre);
    return -1;
  }
  if (series.from_zero) low = 0;
  if (high - low < 1e-12 * std::max(1.0, std::fabs(high))) {
    high += std::max(1e-6, std::fabs(high) * 0.05);
    low -= series.from_zero ? 0 : std::max(1e-6, std::fabs(low) * 0.05);
  }
  Rect axis = rect.take_left(52);
  Rect plot = rect.inset(0, 4);
  const std::string top = decimal(high, series.digits);
  const std::string bottom = decimal(low, series.digits);
  ctx.canvas.text_in({axis.x, plot.y - 4, axis.w - 6, 14}, top, c.muted, Font::mono_small, Align::right);
  ctx.canvas.text_in({axis.x, plot.bottom() - 10, axis.w - 6, 14}, bottom, c.muted, Font::mono_small,
                     Align::right);
  ctx.canvas.horizontal(plot.x, plot.bottom(), plot.w, c.line);
  ctx.canvas.horizontal(plot.x, plot.y, plot.w, c.line, 0.5F);
  const std::size_t n = series.values.size();
  const auto x_of = [&](std::size_t i) {
    return n < 2 ? plot.x + plot.w / 2
                 : plot.x + 3 + (plot.w - 6) * static_cast<float>(i) / static_cast<float>(n - 1);
  };
  const auto y_of = [&](double value) {
    return plot.bottom() - static_cast<float>((value - low) / (high - low)) * plot.h;
  };
  std::vector<ImVec2> points;
  const auto flush = [&] {
    if (points.size() == 1) ctx.canvas.disc(points[0].x, points[0].y, 2.5F, series.color);
    ctx.canvas.polyline(points.data(), static_cast<int>(points.size()), series.color, 1.6F);
    points.clear();
  };
  // More values than pixels: keep the lowest and highest of each pixel.
  const std::size_t stride =
      std::max<std::size_t>(1, n / std::max<std::size_t>(1, static_cast<std::size_t>(plot.w)));
  for (std::size_t i = 0; i < n; i += stride) {
    double a = INFINITY;
    double b = -INFINITY;
    for (std::size_t k = i; k < std::min(n, i + stride); ++k) {
      if (!std::isfinite(series.values[k])) continue;
      a = std::min(a, series.values[k]);
      b = std::max(b, series.values[k]);
    }
    if (!std::isfinite(a)) {
      flush();
      continue;
    }
    points.push_back({x_of(i), y_of(a)});
    if (b > a) points.push_back({x_of(i), y_of(b)});
  }
  if (n <= 40) {
    for (const ImVec2& point : points) ctx.canvas.disc(point.x, point.y, 2, series.color);
  }
  flush();
  if (!ctx.hovered(rect) || n == 0) return -1;
  const float share =
      n < 2 ? 0
            : std::clamp((ctx.pointer.x - plot.x - 3) / (plot.w - 6), 0.0F, 1.0F) * static_cast<float>(n - 1);
  const auto index = static_cast<std::size_t>(std::lround(share));
  ctx.canvas.vertical(x_of(index), plot.y, plot.h, c.muted, 0.5F);
  if (std::isfinite(series.values[index]))
    ctx.canvas.disc(x_of(index), y_of(series.values[index]), 3.5F, series.color);
  ctx.tip("step " + std::to_string(series.first_step + index) + ": " +
          decimal(series.values[index], series.digits + 1) + (series.unit.empty() ? "" : " " + series.unit));
  return static_cast<int>(index);
}

void stacked_bar(Context& ctx, const Rect& rect, const std::vector<Part>& parts, double whole,
                 const std::function<std::string(double)>& text) {
  ctx.canvas.fill(rect, ctx.colors().line, 0.5F);
  if (!(whole > 0)) return;
  double before = 0;
  for (const Part& part : parts) {
    if (part.value <= 0) continue;
    const float x0 = rect.x + static_cast<float>(std::min(1.0, before / whole)) * rect.w;
    before += part.value;
    const float x1 = rect.x + static_cast<float>(std::min(1.0, before / whole)) * rect.w;
    const Rect piece{x0, rect.y, x1 - x0 - (x1 - x0 > 3 ? 1.0F : 0.0F), rect.h};
    ctx.canvas.fill(piece, part.color, part.hatched ? 0.35F : 1);
    if (part.hatched) ctx.canvas.hatch(piece, part.color, 1, 5);
    if (ctx.hovered(piece)) {
      ctx.tip(part.label + ": " + text(part.value) + ", " + decimal(100 * part.value / whole, 1) + " %");
    }
  }
}

std::vector<Part> time_parts(const Palette& c, const analysis::RankSummary& rank) {
  const TimePartition& time = rank.time;
  const Part checkpoint{"checkpoint", static_cast<double>(time.checkpoint_ns), c.of(Meaning::copy), false};
  if (time.total_ns > 0 && !time.known()) {
    return {{"unrecorded: events are missing, or the detail was below modules",
             static_cast<double>(time.total_ns - time.checkpoint_ns), c.of(Meaning::neutral), true},
            checkpoint};
  }
  std::vector<Part> out{
      {"compute", static_cast<double>(time.compute_ns), c.of(Meaning::compute), false},
      {"exposed communication", static_cast<double>(time.exposed_comm_ns), c.of(kExposedComm), true}};
  const bool copies = rank.copies_known || time.total_ns == 0;
  if (copies)
    out.push_back({"exposed copies", static_cast<double>(time.exposed_copy_ns), c.of(kExposedCopy), true});
  out.push_back(checkpoint);
  out.push_back({copies ? "idle" : "idle or copying", static_cast<double>(time.idle_ns),
                 c.of(Meaning::neutral), false});
  if (time.unrecorded_ns > 0) {
    out.push_back(
        {"unrecorded", static_cast<double>(time.unrecorded_ns), mix(c.muted, c.panel, 0.25F), true});
  }
  return out;
}

std::vector<Part> overlap_parts(const Palette& c, const analysis::RankSummary& rank) {
  const auto exposed = static_cast<double>(rank.time.exposed_comm_ns);
  return {{"hidden behind computation", static_cast<double>(rank.time.comm_ns) - exposed,
           c.of(Meaning::gather), false},
          {"exposed (not the same as blocking: see the waits)", exposed, c.of(kExposedComm), true}};
}

void time_legend(Context& ctx, Rect room, const analysis::RankSummary& rank) {
  for (const Part& part : time_parts(ctx.colors(), rank)) {
    const float w = ctx.canvas.width(part.label, Font::small) + 30;
    if (room.w < w) return;
    Rect place = room.take_left(w);
    const Rect mark{place.x, place.y + (place.h - 10) / 2, 14, 10};
    ctx.canvas.fill(mark, part.color, part.hatched ? 0.35F : 1);
    if (part.hatched) ctx.canvas.hatch(mark, part.color, 1, 5);
    ctx.canvas.text_in({mark.right() + 5, place.y, place.w, place.h}, part.label, ctx.colors().muted,
                       Font::small);
  }
}

}  // namespace shardscope::gui
