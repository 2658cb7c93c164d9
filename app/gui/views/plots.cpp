#include "app/gui/views/plots.h"

#include <imgui_internal.h>
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "app/analysis/statistics.h"
#include "app/gui/model/curve.h"
#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/views/plot_menu.h"

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

/// In a low plot the legend would cover the curves: their names are in the header.
constexpr float kLegendRoom = 260;

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

/// The band of the timeline's visible range, the cursor, and the time under the pointer in any panel.
void draw_times(Context& ctx) {
  AppState& app = ctx.app;
  if (!app.run) return;
  const auto steps = app.store().steps();
  if (steps.empty()) return;
  const std::int64_t run_end = app.store().end_ns();
  const Palette& c = ctx.colors();
  const ImVec2 at = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ImPlot::PushPlotClipRect();
  ImDrawList* const list = ImPlot::GetPlotDrawList();
  const auto x_of = [](double step) { return ImPlot::PlotToPixels(step, 0).x; };
  const auto line = [&](std::optional<double> step, Rgb color, float alpha) {
    if (!step) return;
    const float x = x_of(*step);
    list->AddLine({x, at.y}, {x, at.y + size.y}, ImGui::GetColorU32(ink(color, alpha)));
  };
  const auto begin =
      position_on_steps(steps, app.time.range().begin_ns, run_end).value_or(steps.front().step - 0.5);
  const auto end = position_on_steps(steps, app.time.range().end_ns, run_end);
  if (end) {
    const float x0 = x_of(begin);
    list->AddRectFilled({x0, at.y}, {std::max(x0 + 1, x_of(*end)), at.y + size.y},
                        ImGui::GetColorU32(ink(c.accent, 0.10F)));
  }
  line(position_on_steps(steps, app.now_ns(), run_end), c.accent, 0.9F);
  if (ImPlot::IsPlotHovered()) app.hover_next_ns = time_on_steps(steps, ImPlot::GetPlotMousePos().x, run_end);
  if (app.hover_ns) line(position_on_steps(steps, *app.hover_ns, run_end), c.muted, 0.5F);
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
  // The keyboard reaches a plot by Context::key_area(): ImPlot's item does nothing with keys.
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  if (ImPlot::BeginPlot(id, {rect.w, rect.h}, flags | ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText))
    return true;
  ImGui::PopItemFlag();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return false;
}

void end_plot(Context&) {
  ImPlot::EndPlot();
  ImGui::PopItemFlag();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

bool plot_clicked() {
  return ImPlot::IsPlotHovered() && ImGui::IsMouseReleased(0) &&
         ImGui::GetIO().MouseDragMaxDistanceSqr[0] < 9;
}

namespace {

/// Chooses the axis of a plot whose shown values are `shown`, adds it to `title`, and drops what a
/// logarithmic axis cannot show. Returns whether it is logarithmic.
bool choose_scale(AxisScale chosen, bool logarithmic, std::vector<std::vector<double>>& shown,
                  std::string& title) {
  if (chosen == AxisScale::automatic) {
    if (!logarithmic && spans_decades(shown)) {
      logarithmic = true;
      title += ", logarithmic";
    }
  } else {
    logarithmic = chosen == AxisScale::logarithmic;
    if (logarithmic) title += ", logarithmic";
  }
  std::size_t dropped = 0;
  if (logarithmic)
    for (std::vector<double>& values : shown) dropped += drop_not_positive(values);
  if (dropped > 0) title += ", without values up to 0";
  return logarithmic;
}

std::string as_text(const StepPlot& plot, std::size_t count) {
  std::string out = "step";
  for (const Curve& curve : plot.curves)
    out += "\t" + (curve.label.empty() ? plot.title : curve.label) +
           (plot.unit.empty() ? "" : " (" + plot.unit + ")");
  for (std::size_t i = 0; i < count; ++i) {
    out += "\n" + std::to_string(plot.first_step + i);
    for (const Curve& curve : plot.curves) {
      char number[32] = "";
      if (i < curve.values.size() && std::isfinite(curve.values[i]))
        std::snprintf(number, sizeof number, "%.9g", curve.values[i]);
      out += "\t" + std::string(number);
    }
  }
  return out;
}

const std::string& kept_as(const StepPlot& plot) { return plot.kept_as.empty() ? plot.title : plot.kept_as; }

/// `shows`: of each curve, where there are several.
void step_plot_menu(Context& ctx, const Rect& anchor, const StepPlot& plot, std::size_t count,
                    const std::vector<bool>& shows) {
  UiState& ui = ctx.ui;
  std::vector<OverlayItem> more{{"All steps", "double click", !ui.steps.all, false,
                                 [&ui, &app = ctx.app] {
                                   ui.steps.all = true;
                                   if (app.timeline.view.steps_linked)
                                     app.fit();  // the range is the timeline's
                                 }},
                                {"Copy values", "", count > 0, false, [&ui, text = as_text(plot, count)] {
                                   ImGui::SetClipboardText(text.c_str());
                                   ui.say("Copied the values");
                                 }}};
  more.push_back(linked_item(ctx.app.timeline.view.steps_linked));
  for (std::size_t i = 0; plot.curves.size() > 1 && i < std::min(shows.size(), plot.curves.size()); ++i)
    more.push_back({"Show " + plot.curves[i].label, "", true, shows[i],
                    [&ui, id = plot.title + "/" + plot.curves[i].label] { ui.toggled_curve = id; }});
  open_plot_menu(ctx, anchor, kept_as(plot), std::move(more));
}

/// Index of the step at the current time, which the arrow keys go on from.
int step_now(const Context& ctx, const StepPlot& plot) {
  const AppState& app = ctx.app;
  const auto steps = app.run ? app.store().steps() : std::span<const store::StepRow>();
  const auto now = step_of(steps, app.run ? app.now_ns() : 0);
  return static_cast<int>(now ? steps[*now].step : plot.first_step) - static_cast<int>(plot.first_step);
}

/// Index of the step that the arrow keys go to; -1: none.
int step_by_keys(Context& ctx, const Context::KeyArea& keys, const StepPlot& plot, std::size_t count) {
  StepAxis& axis = ctx.ui.steps;
  const int at = step_now(ctx, plot);
  if (keys.down != 0) {
    const double half = std::max(kFewestSteps, (axis.end - axis.begin) * std::pow(0.8, -keys.down)) / 2;
    const double centre = std::clamp(static_cast<double>(plot.first_step) + at, axis.begin, axis.end);
    axis = {centre - half, centre + half, 2 * half >= static_cast<double>(count)};
  }
  if (keys.across == 0 || count == 0) return -1;
  return std::clamp(at + keys.across, 0, static_cast<int>(count) - 1);
}

}  // namespace

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
  plot.logarithmic =
      choose_scale(ctx.app.plot_scales.of(kept_as(asked)), plot.logarithmic, shown, plot.title);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].y = shown[i];
  const Scale scale = plot.logarithmic ? Scale::logarithmic : Scale::linear;
  if (plot.curves.size() == 1)
    plot_head(ctx, head, plot.title, with_unit(last_of(plot.curves[0]), plot.digits, plot.unit));
  else
    head_of_curves(ctx, head, plot);
  const auto range = value_range(shown, plot.from_zero ? Zero::shown : Zero::not_shown, scale);
  if (!range) {
    ctx.canvas.text_in(room,
                       count == 0         ? "no values yet"
                       : plot.logarithmic ? "no values above 0 in this range"
                                          : "no values in this range",
                       ctx.colors().muted, Font::small, Align::centre);
    if (count > 0 && ctx.clicked(room)) axis.all = true;
    const Context::KeyArea keys = ctx.key_area(room, asked.title);
    if (menu_clicked(ctx, room)) step_plot_menu(ctx, at_pointer(ctx), asked, count, {});
    if (keys.chosen || keys.menu) step_plot_menu(ctx, room, asked, count, {});
    return step_by_keys(ctx, keys, asked, count);
  }
  const bool legend = plot.curves.size() > 1 && room.h >= kLegendRoom;
  if (!begin_plot(ctx, ("##" + asked.title).c_str(), room,
                  ImPlotFlags_NoMenus | (legend ? 0 : ImPlotFlags_NoLegend)))
    return -1;
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
    constexpr int kMostTicks = 8;
    const auto ticks = ticks_between(range->low, range->high,
                                     std::clamp(static_cast<int>(room.h / kTickRoom), 2, kMostTicks));
    if (!ticks.empty()) ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()));
  }
  ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_Horizontal);
  ImPlot::SetupFinish();
  draw_times(ctx);
  std::vector<bool> shows;
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
    ImPlotItem* const item = ImPlot::GetItem(plot.curves[i].label.c_str());
    if (item != nullptr && ctx.ui.toggled_curve == asked.title + "/" + plot.curves[i].label) {
      item->Show = !item->Show;
      ctx.ui.toggled_curve.clear();
      ctx.moving = true;
    }
    shows.push_back(item == nullptr || item->Show);
  }
  const bool menu = plot_menu_clicked();
  const auto hovered = hovered_step(ctx, plot, count);
  const bool clicked = hovered && plot_clicked();
  const bool fit = ImPlot::IsPlotHovered() && ImGui::IsMouseDoubleClicked(0);
  const float now_x = ImPlot::PlotToPixels(plot.first_step + step_now(ctx, plot), 0).x;
  end_plot(ctx);
  if (fit) {
    axis.all = true;
  } else if (begin != axis.begin || end != axis.end) {
    axis = {begin, end, false};
  }
  const Context::KeyArea keys = ctx.key_area(room, asked.title);
  if (keys.at) ctx.ui.key_tip.aim(std::clamp(now_x, room.x, room.right()), room.y + room.h / 3);
  if (menu) step_plot_menu(ctx, at_pointer(ctx), asked, count, shows);
  if (keys.chosen || keys.menu) step_plot_menu(ctx, room, asked, count, shows);
  const int by_keys = step_by_keys(ctx, keys, asked, count);
  return clicked ? static_cast<int>(*hovered) : by_keys;
}

namespace {

void distribution_menu(Context& ctx, const Rect& room, const std::string& kept, bool clicked) {
  const Context::KeyArea keys = ctx.key_area(room, kept);
  if (clicked)
    open_plot_menu(ctx, at_pointer(ctx), kept);
  else if (keys.chosen || keys.menu)
    open_plot_menu(ctx, room, kept);
}

}  // namespace

void distribution_plot(Context& ctx, const Rect& rect, const Distribution& plot) {
  Rect room = rect;
  const std::string kept = "distribution of " + plot.title;
  const bool logarithmic = ctx.app.plot_scales.of(kept) == AxisScale::logarithmic;
  ImPlotRange range(INFINITY, -INFINITY);
  std::vector<std::vector<double>> values;
  std::string medians;
  std::size_t dropped = 0;
  for (const Curve& curve : plot.curves) {
    values.push_back(finite(curve.values));
    if (logarithmic) dropped += std::erase_if(values.back(), [](double value) { return value <= 0; });
    std::ranges::sort(values.back());
    if (values.back().empty()) continue;
    range.Min = std::min(range.Min, values.back().front());
    range.Max = std::max(range.Max, values.back().back());
    medians += (medians.empty() ? "" : "  ") + (plot.curves.size() > 1 ? curve.label + " " : std::string()) +
               decimal(analysis::quantile(values.back(), 0.5), plot.digits);
  }
  if (!medians.empty() && !plot.unit.empty()) medians += " " + plot.unit;
  plot_head(ctx, room.take_top(kTitle),
            plot.title + (logarithmic ? ", logarithmic" : "") +
                (dropped > 0 ? ", without values up to 0" : "") + ", median",
            medians);
  if (range.Min > range.Max) {
    ctx.canvas.text_in(room, dropped > 0 ? "no values above 0" : "no values yet", ctx.colors().muted,
                       Font::small, Align::centre);
    distribution_menu(ctx, room, kept, menu_clicked(ctx, room));
    return;
  }
  if (range.Max <= range.Min) range.Max = range.Min + std::max(1e-9, std::fabs(range.Min) * 0.01);
  std::size_t most = 0;
  for (const auto& one : values) most = std::max(most, one.size());
  // Equal bins for all curves, by the largest one: Rice's rule, 2 n^(1/3).
  const int bins = std::clamp(static_cast<int>(std::ceil(2 * std::cbrt(static_cast<double>(most)))), 4, 80);
  const bool several = plot.curves.size() > 1;
  const bool legend = several && room.h >= kLegendRoom;
  // Differs from the name of a step plot with the same title, which would share its axes.
  if (!begin_plot(ctx, ("##" + kept).c_str(), room,
                  ImPlotFlags_NoMenus | (legend ? 0 : ImPlotFlags_NoLegend)))
    return;
  // Of its own: equal widths on a linear axis, equal ratios on a logarithmic one.
  const std::vector<double> edges =
      logarithmic ? log_edges(range.Min, range.Max, static_cast<std::size_t>(bins)) : std::vector<double>();
  if (logarithmic) ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
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
    spec.FillAlpha = several ? 0.45F : 0.8F;
    spec.LineColor = ink(plot.curves[i].color);
    if (logarithmic) {
      std::vector<double> shares = shares_in(values[i], edges);
      shares.push_back(shares.back());  // the right end of the last bar
      spec.Flags = ImPlotStairsFlags_Shaded;
      ImPlot::PlotStairs(plot.curves[i].label.c_str(), edges.data(), shares.data(),
                         static_cast<int>(edges.size()), spec);
      continue;
    }
    spec.Flags = ImPlotHistogramFlags_Density;
    ImPlot::PlotHistogram(plot.curves[i].label.c_str(), values[i].data(), static_cast<int>(values[i].size()),
                          bins, 1, range, spec);
  }
  if (ImPlot::IsPlotHovered()) {
    const double width = (range.Max - range.Min) / bins;
    const double x = ImPlot::GetPlotMousePos().x;
    double from = range.Min + std::floor((x - range.Min) / width) * width, to = from + width;
    if (logarithmic) {
      const auto above = std::ranges::upper_bound(edges, x);
      const auto bin = std::clamp<std::ptrdiff_t>(above - edges.begin(), 1, std::ssize(edges) - 1);
      from = edges[static_cast<std::size_t>(bin) - 1];
      to = edges[static_cast<std::size_t>(bin)];
    }
    Details details;
    details.title = decimal(from, plot.digits) + " to " + with_unit(to, plot.digits, plot.unit);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto in_bin = std::ranges::count_if(
          values[i], [&](double v) { return v >= from && (v < to || (v == range.Max && to >= v)); });
      details.fields.push_back(
          {plot.curves[i].label, std::to_string(in_bin) + " of " + std::to_string(values[i].size()), "", ""});
    }
    ctx.tip(details);
  }
  const bool menu = plot_menu_clicked();
  end_plot(ctx);
  distribution_menu(ctx, room, kept, menu);
}

}  // namespace shardscope::gui
