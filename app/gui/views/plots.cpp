#include "app/gui/views/plots.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "app/analysis/statistics.h"
#include "app/gui/model/curve.h"
#include "app/gui/model/format.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

namespace {

constexpr float kTitle = 20;
/// ImPlot's minimum: a shorter axis would look like one zoomed by the user.
constexpr double kFewestSteps = 2;
constexpr double kMarkedValues = 40;  ///< with more values the line has no marks

/// Title at the left, last value at the right.
void plot_head(Context& ctx, Rect head, const std::string& title, const std::string& last) {
  const Palette& c = ctx.colors();
  const float w = std::min(head.w * 0.6F, ctx.canvas.width(last, Font::mono) + 1);
  ctx.canvas.text_in(head.take_right(w), last, c.text, Font::mono, Align::right);
  ctx.canvas.text_in(head, title, c.muted, Font::small);
}

std::string with_unit(double value, int digits, const std::string& unit) {
  return decimal(value, digits) + (unit.empty() || !std::isfinite(value) ? "" : " " + unit);
}

double last_of(const Curve& curve) {
  const auto last = std::ranges::find_if(curve.values.rbegin(), curve.values.rend(),
                                         [](double value) { return std::isfinite(value); });
  return last == curve.values.rend() ? NAN : *last;
}

/// Title at the left; colour, name and last value of each curve at the right, while they fit.
void head_of_curves(Context& ctx, Rect head, const StepPlot& plot) {
  const Palette& c = ctx.colors();
  constexpr float kSwatch = 8, kGap = 6;
  const float title = ctx.canvas.width(plot.title, Font::small) + kGap;
  for (std::size_t i = plot.curves.size(); i-- > 0;) {
    const Curve& curve = plot.curves[i];
    const std::string value = with_unit(last_of(curve), plot.digits, plot.unit);
    const float value_width = ctx.canvas.width(value, Font::mono_small) + 1;
    const float label_width = ctx.canvas.width(curve.label, Font::small) + 1;
    if (head.w - title < value_width + label_width + kSwatch + 3 * kGap) break;
    ctx.canvas.text_in(head.take_right(value_width), value, c.text, Font::mono_small, Align::right);
    head.take_right(kGap);
    ctx.canvas.text_in(head.take_right(label_width), curve.label, c.muted, Font::small);
    head.take_right(kGap / 2);
    const Rect swatch = head.take_right(kSwatch);
    ctx.canvas.fill({swatch.x, swatch.y + (swatch.h - kSwatch) / 2, kSwatch, kSwatch}, curve.color);
    head.take_right(kGap);
  }
  ctx.canvas.text_in(head, plot.title, c.muted, Font::small);
}

/// Step numbers are integers: ticks between two steps have no label.
int step_tick(double value, char* text, int size, void*) {
  const double step = std::round(value);
  if (std::abs(value - step) > 1e-6) return std::snprintf(text, static_cast<std::size_t>(size), "%s", "");
  return std::snprintf(text, static_cast<std::size_t>(size), "%.0f", step == 0 ? 0 : step);
}

/// The position of a time on the step axis: a step number with a fraction.
std::optional<double> step_at(std::span<const store::StepRow> steps, std::int64_t at_ns) {
  const auto after =
      std::ranges::upper_bound(steps, at_ns, {}, [](const store::StepRow& step) { return step.begin_ns; });
  if (after == steps.begin()) return std::nullopt;
  const store::StepRow& step = *(after - 1);
  const std::int64_t end = after != steps.end() ? after->begin_ns : step.end_ns;
  const double length = std::max(1.0, static_cast<double>(end) - static_cast<double>(step.begin_ns));
  return step.step - 0.5 + std::min(1.0, static_cast<double>(at_ns - step.begin_ns) / length);
}

/// The band of the timeline's visible range, and the cursor.
void time_on_steps(Context& ctx) {
  const AppState& app = ctx.app;
  if (!app.run) return;
  const auto steps = app.store().steps();
  if (steps.empty()) return;
  const Palette& c = ctx.colors();
  const ImVec2 at = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ImPlot::PushPlotClipRect();
  ImDrawList* const list = ImPlot::GetPlotDrawList();
  const auto x_of = [](double step) { return ImPlot::PlotToPixels(step, 0).x; };
  const auto begin = step_at(steps, app.time.range().begin_ns).value_or(steps.front().step - 0.5);
  const auto end = step_at(steps, app.time.range().end_ns);
  if (end) {
    const float x0 = x_of(begin);
    list->AddRectFilled({x0, at.y}, {std::max(x0 + 1, x_of(*end)), at.y + size.y},
                        ImGui::GetColorU32(ink(c.accent, 0.10F)));
  }
  if (const auto now = step_at(steps, app.now_ns())) {
    const float x = x_of(*now);
    list->AddLine({x, at.y}, {x, at.y + size.y}, ImGui::GetColorU32(ink(c.accent, 0.9F)));
  }
  ImPlot::PopPlotClipRect();
}

/// Tooltip: each curve's value at the step under the pointer.
std::optional<std::size_t> hovered_step(Context& ctx, const StepPlot& plot, std::size_t count) {
  if (!ImPlot::IsPlotHovered() || count == 0) return std::nullopt;
  const double x = std::round(ImPlot::GetPlotMousePos().x) - plot.first_step;
  const auto step = static_cast<std::size_t>(std::clamp(x, 0.0, static_cast<double>(count - 1)));
  Details details;
  details.title = "step " + std::to_string(plot.first_step + step);
  for (const Curve& curve : plot.curves) {
    const double value = step < curve.values.size() ? curve.values[step] : NAN;
    details.fields.push_back({curve.label, with_unit(value, plot.digits + 1, plot.unit), "", ""});
    if (std::isfinite(value) && (!plot.logarithmic || value > 0)) {
      const ImVec2 dot = ImPlot::PlotToPixels(plot.first_step + static_cast<double>(step), value);
      ImPlot::GetPlotDrawList()->AddCircleFilled(dot, 3.5F, ImGui::GetColorU32(ink(curve.color)));
    }
  }
  ctx.tip(details);
  return step;
}

}  // namespace

bool begin_plot(Context& ctx, const char* id, const Rect& rect, int flags) {
  if (rect.w < 60 || rect.h < 40) return false;
  ImGui::PushFont(ctx.canvas.fonts().of(Font::mono_small), line_height(Font::mono_small));
  ImGui::SetCursorScreenPos({rect.x, rect.y});
  // ImPlot draws the frame of a plot as ImGui that of a field, once its axes are set up.
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot(id, {rect.w, rect.h}, flags | ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText))
    return true;
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return false;
}

void end_plot(Context&) {
  ImPlot::EndPlot();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

bool plot_clicked() {
  return ImPlot::IsPlotHovered() && ImGui::IsMouseReleased(0) &&
         ImGui::GetIO().MouseDragMaxDistanceSqr[0] < 9;
}

int step_plot(Context& ctx, const Rect& rect, const StepPlot& asked) {
  StepPlot plot = asked;
  Rect room = rect;
  Rect head = room.take_top(kTitle);
  std::size_t count = 0;
  for (const Curve& curve : plot.curves) count = std::max(count, curve.values.size());
  StepAxis& axis = ctx.ui.steps;
  if (axis.all) {
    axis.begin = plot.first_step - 0.5;
    axis.end = std::max(axis.begin + kFewestSteps, plot.first_step + static_cast<double>(count) - 0.5);
  }
  std::vector<CurvePoints> points;
  std::vector<std::vector<double>> shown;
  for (const Curve& curve : plot.curves) {
    points.push_back(thinned(curve.values, plot.first_step, axis.begin, axis.end,
                             static_cast<std::size_t>(std::max(8.0F, room.w))));
    shown.push_back(points.back().y);
  }
  if (!plot.logarithmic && spans_decades(shown)) {
    plot.logarithmic = true;
    plot.title += ", logarithmic";
  }
  const Scale scale = plot.logarithmic ? Scale::logarithmic : Scale::linear;
  if (plot.curves.size() == 1)
    plot_head(ctx, head, plot.title, with_unit(last_of(plot.curves[0]), plot.digits, plot.unit));
  else
    head_of_curves(ctx, head, plot);
  const auto range = value_range(shown, plot.from_zero ? Zero::shown : Zero::not_shown, scale);
  if (!range) {
    ctx.canvas.text_in(room, count == 0 ? "no values yet" : "no values in this range", ctx.colors().muted,
                       Font::small, Align::centre);
    if (count > 0 && ctx.clicked(room)) axis.all = true;
    return -1;
  }
  // In a low plot the legend would cover the curves: their names are in the header.
  constexpr float kLegendRoom = 110;
  const bool legend = plot.curves.size() > 1 && room.h >= kLegendRoom;
  if (!begin_plot(ctx, ("##" + asked.title).c_str(), room, legend ? 0 : ImPlotFlags_NoLegend)) return -1;
  double begin = axis.begin;
  double end = axis.end;
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch,
                    ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisLinks(ImAxis_X1, &begin, &end);
  ImPlot::SetupAxisZoomConstraints(ImAxis_X1, kFewestSteps, 1e9);
  // Leave room for the mark of the highest value, also in a low plot.
  const double above = plot.logarithmic ? 0 : (range->high - range->low) * 4 / std::max(20.0F, room.h - 20);
  ImPlot::SetupAxisLimits(ImAxis_Y1, range->low, range->high + above, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_X1, step_tick);
  if (plot.logarithmic) {
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  } else {
    // ImPlot's own ticks overlap in a low plot.
    constexpr float kTickRoom = 26;
    const auto ticks =
        ticks_between(range->low, range->high, std::max(2, static_cast<int>(room.h / kTickRoom)));
    if (!ticks.empty()) ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()));
  }
  ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_Horizontal);
  ImPlot::SetupFinish();
  time_on_steps(ctx);
  for (std::size_t i = 0; i < points.size(); ++i) {
    ImPlotSpec spec;
    spec.LineColor = ink(plot.curves[i].color);
    spec.LineWeight = 1.6F;
    if (plot.curves[i].sparse) spec.Flags = ImPlotLineFlags_SkipNaN;
    if (plot.curves[i].sparse || axis.end - axis.begin <= kMarkedValues + 0.5) {
      spec.Marker = i % 2 == 0 ? ImPlotMarker_Circle : ImPlotMarker_Square;
      spec.MarkerSize = 2.5F;
      spec.MarkerFillColor = spec.MarkerLineColor = spec.LineColor;
    }
    ImPlot::PlotLine(plot.curves[i].label.c_str(), points[i].x.data(), points[i].y.data(),
                     static_cast<int>(points[i].x.size()), spec);
  }
  const auto hovered = hovered_step(ctx, plot, count);
  const bool clicked = hovered && plot_clicked();
  const bool fit = ImPlot::IsPlotHovered() && ImGui::IsMouseDoubleClicked(0);
  end_plot(ctx);
  if (fit) {
    axis.all = true;
  } else if (begin != axis.begin || end != axis.end) {
    axis = {begin, end, false};
  }
  return clicked ? static_cast<int>(*hovered) : -1;
}

void distribution_plot(Context& ctx, const Rect& rect, const Distribution& plot) {
  Rect room = rect;
  ImPlotRange range(INFINITY, -INFINITY);
  std::vector<std::vector<double>> values;
  std::string medians;
  for (const Curve& curve : plot.curves) {
    values.push_back(finite(curve.values));
    std::ranges::sort(values.back());
    if (values.back().empty()) continue;
    range.Min = std::min(range.Min, values.back().front());
    range.Max = std::max(range.Max, values.back().back());
    medians += (medians.empty() ? "" : "  ") + (plot.curves.size() > 1 ? curve.label + " " : std::string()) +
               decimal(analysis::quantile(values.back(), 0.5), plot.digits);
  }
  if (!medians.empty() && !plot.unit.empty()) medians += " " + plot.unit;
  plot_head(ctx, room.take_top(kTitle), plot.title + ", median", medians);
  if (range.Min > range.Max) {
    ctx.canvas.text_in(room, "no values yet", ctx.colors().muted, Font::small, Align::centre);
    return;
  }
  if (range.Max <= range.Min) range.Max = range.Min + std::max(1e-9, std::fabs(range.Min) * 0.01);
  std::size_t most = 0;
  for (const auto& one : values) most = std::max(most, one.size());
  // Equal bins for all curves, by the largest one: Rice's rule, 2 n^(1/3).
  const int bins = std::clamp(static_cast<int>(std::ceil(2 * std::cbrt(static_cast<double>(most)))), 4, 80);
  const bool legend = plot.curves.size() > 1;
  // Differs from the name of a step plot with the same title, which would share its axes.
  if (!begin_plot(ctx, ("##distribution of " + plot.title).c_str(), room, legend ? 0 : ImPlotFlags_NoLegend))
    return;
  ImPlot::SetupAxes(nullptr, nullptr,
                    ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch | ImPlotAxisFlags_AutoFit,
                    ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch | ImPlotAxisFlags_AutoFit |
                        ImPlotAxisFlags_NoTickLabels);
  // None so close to an end that its label would be cut.
  std::vector<double> ticks = ticks_between(range.Min, range.Max, std::max(2, static_cast<int>(room.w / 80)));
  const double margin = 0.06 * (range.Max - range.Min);
  std::erase_if(ticks, [&](double at) { return at < range.Min + margin || at > range.Max - margin; });
  if (!ticks.empty()) ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
  ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_Horizontal);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) continue;
    ImPlotSpec spec;
    spec.FillColor = ink(plot.curves[i].color);
    spec.FillAlpha = legend ? 0.45F : 0.8F;
    spec.LineColor = ink(plot.curves[i].color);
    spec.Flags = ImPlotHistogramFlags_Density;
    ImPlot::PlotHistogram(plot.curves[i].label.c_str(), values[i].data(), static_cast<int>(values[i].size()),
                          bins, 1, range, spec);
  }
  if (ImPlot::IsPlotHovered()) {
    const double width = (range.Max - range.Min) / bins;
    const double x = ImPlot::GetPlotMousePos().x;
    const double from = range.Min + std::floor((x - range.Min) / width) * width;
    Details details;
    details.title = decimal(from, plot.digits) + " to " + with_unit(from + width, plot.digits, plot.unit);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto in_bin = std::ranges::count_if(values[i], [&](double v) {
        return v >= from && (v < from + width || (v == range.Max && from + width >= v));
      });
      details.fields.push_back(
          {plot.curves[i].label, std::to_string(in_bin) + " of " + std::to_string(values[i].size()), "", ""});
    }
    ctx.tip(details);
  }
  end_plot(ctx);
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
