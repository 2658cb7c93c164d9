#include "app/gui/views/memory_curve.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/format.h"
#include "app/gui/model/linked_axes.h"
#include "app/gui/model/names.h"
#include "app/gui/views/plot_menu.h"
#include "app/gui/views/plots.h"
#include "app/store/model_states.h"

namespace shardscope::gui {
namespace {

constexpr float kSampleWidth = 2;        ///< width of a sample in pixels
constexpr const char* kPlot = "Memory";  ///< name by which the choice of its axis is kept

bool is_logarithmic(const AppState& app) { return app.plot_scales.of(kPlot) == AxisScale::logarithmic; }

/// Top of the axis, and whether the line of memory outside of the runtime's arenas is below it.
struct Height {
  double top = 1;
  bool with_outside = false;
};

/// `room`: height of the plot with its axis, in pixels.
Height height_of(const AppState& app, const store::MemorySample& peak, float room) {
  const bool device = app.memory_pool == ev::MemoryPool::device;
  const double predicted = device ? static_cast<double>(app.run->summary().memory_model.bytes_per_rank) : 0;
  std::int64_t most_outside = 0;
  if (device) {
    for (const OutsideMemory& sample : app.run->index().outside(app.memory_rank))
      most_outside = std::max(most_outside, sample.bytes);
  }
  // If outside memory is much larger than the rest (a PyTorch process, a small model), its line would flatten
  // the stack: only the legend shows it.
  const double counted = std::max({static_cast<double>(peak.total()), predicted, 1.0});
  const bool fits = static_cast<double>(most_outside) <= 3 * counted;
  // Room for the label of the peak above the maximum.
  constexpr float kWords = 18, kTimes = 20;
  const double above = std::max(1.12, 1.0 / (1 - kWords / std::max(room - kTimes, 2 * kWords)));
  return {above * std::max(counted, static_cast<double>(fits ? peak.total() + most_outside : 0)), fits};
}

/// Bottom of a logarithmic axis: four decades below the top, or less where all is used more than that.
double bottom_of(double top) { return std::max(1.0, top / 10'000); }

/// Powers of two between the ends of a logarithmic axis, about `wanted` of them.
std::vector<double> binary_ticks(double low, double high, int wanted) {
  const int first = static_cast<int>(std::ceil(std::log2(low))), last = static_cast<int>(std::log2(high));
  const int stride = std::max(1, (last - first + wanted) / wanted);
  std::vector<double> out;
  for (int power = last; power >= first; power -= stride) out.push_back(std::exp2(power));
  return out;
}

/// Time axis below, bytes at the left. Dragging and zooming change `begin` and `end`.
void set_up_axes(Context& ctx, const Rect& room, const TimeRange& range, double top, double& begin,
                 double& end) {
  const bool logarithmic = is_logarithmic(ctx.app);
  constexpr ImPlotAxisFlags kFlags = ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch;
  ImPlot::SetupAxes(nullptr, nullptr, kFlags, kFlags | ImPlotAxisFlags_LockMin);
  ImPlot::SetupAxisLinks(ImAxis_X1, &begin, &end);
  ImPlot::SetupAxisZoomConstraints(ImAxis_X1, static_cast<double>(TimeAxis::kShortest), 1e18);
  ImPlot::SetupAxisLimits(ImAxis_Y1, logarithmic ? bottom_of(top) : 0, top, ImPlotCond_Always);
  if (logarithmic) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  const TimeScale wide{range, room.x, room.w};
  std::vector<double> at;
  std::vector<std::string> labels;
  for (const Tick& tick : time_ticks(wide, 100)) {
    at.push_back(static_cast<double>(tick.at_ns));
    // Centred at its tick, the label would cross the edge.
    const float half = ctx.canvas.width(tick.label, Font::mono_small) / 2;
    labels.push_back(wide.x_of(tick.at_ns) + half > room.right() ? std::string() : tick.label);
  }
  const int ticks = room.h > 160 ? std::clamp(static_cast<int>(room.h / 90), 4, 10) : 2;
  const std::vector<double> values =
      logarithmic ? binary_ticks(bottom_of(top), top, ticks) : value_ticks(top, ticks, true);
  std::vector<std::string> amounts;
  amounts.reserve(values.size());
  for (const double value : values) amounts.push_back(bytes(static_cast<std::int64_t>(value)).text());
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    for (const std::string& text : texts) out.push_back(text.c_str());
    return out;
  };
  if (!at.empty())
    ImPlot::SetupAxisTicks(ImAxis_X1, at.data(), static_cast<int>(at.size()), pointers(labels).data());
  if (!values.empty())
    ImPlot::SetupAxisTicks(ImAxis_Y1, values.data(), static_cast<int>(values.size()),
                           pointers(amounts).data());
  ImPlot::SetupFinish();
}

double time_at(const TimeScale& scale, std::size_t column) {
  return static_cast<double>(scale.time_of(scale.left + static_cast<float>(column) * kSampleWidth));
}

/// `ground`: bottom of the axis.
void draw_stack(Context& ctx, const std::vector<StackRun>& runs, const TimeScale& scale,
                const MemoryLegend& legend, double ground) {
  const auto end = static_cast<double>(ctx.app.store().end_ns());
  std::vector<double> x;
  for (const StackRun& run : runs) {
    x.push_back(time_at(scale, run.first));
    x.push_back(std::min(end, time_at(scale, run.last)));
  }
  std::vector<double> below(x.size(), 0), above(x.size(), 0), drawn_below(x.size()), drawn_above(x.size());
  for (const ev::MemoryCategory category : stack_order()) {
    if (legend.hides(category)) continue;
    bool any = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::int64_t value = runs[i].bytes[static_cast<std::size_t>(category)];
      any |= value > 0;
      above[2 * i] = above[2 * i + 1] = below[2 * i] + static_cast<double>(std::max<std::int64_t>(0, value));
    }
    if (!any) continue;
    ImPlotSpec spec;
    spec.FillColor = ink(shade(ctx.colors(), category));
    spec.LineColor = spec.FillColor;
    const auto on_axis = [ground](double value) { return std::max(ground, value); };
    std::ranges::transform(below, drawn_below.begin(), on_axis);
    std::ranges::transform(above, drawn_above.begin(), on_axis);
    ImPlot::PlotShaded(word(category), x.data(), drawn_below.data(), drawn_above.data(),
                       static_cast<int>(x.size()), spec);
    below = above;
  }
}

/// The sum of the model states, which ZeRO's formula predicts.
void draw_states_line(Context& ctx, const std::vector<StackRun>& runs, const TimeScale& scale) {
  const std::int32_t stage = stage_of(ctx.app.store());
  std::vector<double> x;
  std::vector<double> y;
  for (const StackRun& run : runs) {
    store::MemorySample sample;
    sample.bytes = run.bytes;
    const auto value = static_cast<double>(store::model_state_bytes(sample, stage));
    for (const std::size_t at : {run.first, run.last}) {
      x.push_back(time_at(scale, at));
      y.push_back(value);
    }
  }
  ImPlotSpec spec;
  spec.LineColor = ink(ctx.colors().text, 0.9F);
  ImPlot::PlotLine("model states", x.data(), y.data(), static_cast<int>(x.size()), spec);
}

/// The prediction of ZeRO's formula, dashed and labelled with the formula.
void draw_expression(Context& ctx, const analysis::MemoryModel& model) {
  const Palette& c = ctx.colors();
  const ImVec2 place = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  const float y = ImPlot::PlotToPixels(0, static_cast<double>(model.bytes_per_rank)).y;
  ctx.canvas.dashed(place.x, y, size.x, c.text);
  const std::string label = model.expression + " = " + bytes(model.bytes_per_rank).text();
  const float w = ctx.canvas.width(label, Font::small) + 8;
  const Rect plate{place.x + size.x - w - 4, y - 17 < place.y ? y + 2 : y - 17, w, 15};
  ctx.canvas.fill(plate, c.panel, 0.8F, 2);
  ctx.canvas.text_in(plate.inset(4, 0), label, c.text, Font::small);
}

/// Marks the run's peak if visible.
void draw_peak(Context& ctx, const store::MemorySample& peak) {
  const Palette& c = ctx.colors();
  const TimeRange range = memory_axis(ctx.app).range();
  const std::string text = "peak " + bytes(peak.total()).text();
  const ImVec2 at = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  if (!range.contains(peak.at_ns)) {
    ctx.canvas.text_in({at.x, at.y, size.x - 4, 14}, text + " at " + timestamp(peak.at_ns, 1'000'000),
                       c.muted, Font::small, Align::right);
    return;
  }
  const ImVec2 tip = ImPlot::PlotToPixels(static_cast<double>(peak.at_ns), static_cast<double>(peak.total()));
  ctx.canvas.triangle(tip.x - 4, tip.y - 7, tip.x + 4, tip.y - 7, tip.x, tip.y - 1, c.of(Meaning::trouble));
  const float width = ctx.canvas.width(text, Font::small);
  const float x = tip.x + 8 + width > at.x + size.x ? tip.x - 8 - width : tip.x + 8;
  ctx.canvas.text(x, tip.y - 15, text, c.text, Font::small);
}

/// Lines at the cursor and at the begin of a difference.
void draw_times(Context& ctx, const TimeRange& range, std::optional<std::int64_t> from_ns) {
  const Palette& c = ctx.colors();
  const ImVec2 place = ImPlot::GetPlotPos();
  const float height = ImPlot::GetPlotSize().y;
  const auto x_of = [](std::int64_t ns) { return ImPlot::PlotToPixels(static_cast<double>(ns), 0).x; };
  if (const auto cursor = ctx.app.cursor_ns; cursor && range.contains(*cursor))
    ctx.canvas.vertical(x_of(*cursor), place.y, height, c.accent);
  if (from_ns && range.contains(*from_ns)) {
    const float x = x_of(*from_ns);
    ctx.canvas.vertical(x, place.y, height, c.muted);
    ctx.canvas.text(x + 4, place.y + 2, "from here", c.muted, Font::small);
  }
}

}  // namespace

/// Memory in use by the driver's count, dashed above the stack: arenas and memory outside of them.
void MemoryCurve::outside_line(Context& ctx, const TimeScale& scale) {
  if (ctx.app.memory_pool != ev::MemoryPool::device) return;
  const std::span<const OutsideMemory> samples = ctx.app.run->index().outside(ctx.app.memory_rank);
  if (samples.empty()) return;
  const std::int64_t end = ctx.app.store().end_ns();
  std::vector<double> x;
  std::vector<double> y;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::int64_t at = scale.time_of(scale.left + (static_cast<float>(i) + 0.5F) * kSampleWidth);
    const auto outside = outside_at(samples, at);
    x.push_back(static_cast<double>(at));
    y.push_back(outside && at <= end && i % 3 != 2 ? static_cast<double>(columns_[i].total() + *outside)
                                                   : std::numeric_limits<double>::quiet_NaN());
  }
  ImPlotSpec spec;
  spec.LineColor = ink(ctx.colors().muted);
  ImPlot::PlotLine("with what the driver counts outside", x.data(), y.data(), static_cast<int>(x.size()),
                   spec);
}

void MemoryCurve::hover(Context& ctx, const TimeScale& scale) {
  AppState& app = ctx.app;
  const ImVec2 at = ImPlot::GetPlotPos();
  const bool hovered = ImPlot::IsPlotHovered() && !columns_.empty();
  if (hovered) app.hover_next_ns = scale.time_of(ctx.pointer.x);
  // The time under the pointer, in whichever panel it is.
  if (hovered || (app.hover_ns && scale.range.contains(*app.hover_ns)))
    ctx.canvas.vertical(hovered ? ctx.pointer.x : scale.x_of(*app.hover_ns), at.y, ImPlot::GetPlotSize().y,
                        ctx.colors().muted, 0.5F);
  if (!hovered) return;
  const auto last = static_cast<float>(columns_.size() - 1);
  const store::MemorySample& column =
      columns_[static_cast<std::size_t>(std::clamp((ctx.pointer.x - scale.left) / kSampleWidth, 0.0F, last))];
  Details details;
  details.title = bytes(column.total()).text();
  details.subtitle = "rank " + std::to_string(app.memory_rank) + ", " + word(app.memory_pool) +
                     ", highest within this pixel";
  const std::vector<ev::MemoryCategory> stacked = used();
  for (auto category = stacked.rbegin(); category != stacked.rend(); ++category) {
    const std::int64_t value = column.bytes[static_cast<std::size_t>(*category)];
    if (value != 0) details.fields.push_back({word(*category), bytes(value).text(), "", ""});
  }
  details.fields.push_back(
      {"model states", bytes(store::model_state_bytes(column, stage_of(app.store()))).text(), "", ""});
  details.fields.push_back({"time", timestamp(scale.time_of(ctx.pointer.x), 10'000), "", ""});
  ctx.tip(details);
  const std::int64_t end = app.store().end_ns();
  if (plot_clicked()) app.jump_to(std::clamp<std::int64_t>(scale.time_of(ctx.pointer.x), 0, end));
}

/// Right button, or Enter: the menu of the axis. Arrow keys: the cursor, and zoom.
void MemoryCurve::keys(Context& ctx, const Rect& room, const TimeScale& scale, bool menu) {
  AppState& app = ctx.app;
  const Context::KeyArea area = ctx.key_area(room, "memory over time");
  if (area.at && scale.range.contains(app.now_ns()))
    ctx.ui.key_tip.aim(scale.x_of(app.now_ns()), room.y + room.h / 3);
  if (menu || area.chosen || area.menu)
    open_plot_menu(ctx, menu ? at_pointer(ctx) : room, kPlot, {linked_item(app.timeline.view.memory_linked)});
  if (area.down != 0) {
    const double factor = std::pow(0.75, -area.down);
    if (app.timeline.view.memory_linked)
      app.zoom(factor, app.now_ns());
    else
      app.memory_time.zoom(factor, app.now_ns(), app.store().end_ns());
  }
  constexpr std::int64_t kParts = 100;  // of the range: the cursor moves by one
  if (area.across != 0)
    app.jump_to(std::clamp<std::int64_t>(app.now_ns() + area.across * scale.range.length() / kParts, 0,
                                         app.store().end_ns()));
}

void MemoryCurve::draw(Context& ctx, const Rect& room, const store::MemorySample& peak,
                       const MemoryLegend& legend, std::optional<std::int64_t> from_ns) {
  AppState& app = ctx.app;
  const store::Store& data = app.store();
  const Height height = height_of(app, peak, room.h);
  if (!begin_plot(ctx, "##memory over time", room, ImPlotFlags_NoLegend | ImPlotFlags_NoMenus)) return;
  const TimeRange range = memory_axis(app).range();
  auto begin = static_cast<double>(range.begin_ns);
  auto end = static_cast<double>(range.end_ns);
  set_up_axes(ctx, room, range, height.top, begin, end);
  const ImVec2 size = ImPlot::GetPlotSize();
  columns_.assign(static_cast<std::size_t>(std::max(1.0F, std::floor(size.x / kSampleWidth))), {});
  data.memory_columns(app.memory_rank, app.memory_pool, range.begin_ns, range.end_ns, columns_);
  const TimeScale scale{range, ImPlot::GetPlotPos().x, static_cast<float>(columns_.size()) * kSampleWidth};
  const std::vector<StackRun> runs = stack_runs(columns_);
  const bool logarithmic = is_logarithmic(app);
  draw_stack(ctx, runs, scale, legend, logarithmic ? bottom_of(height.top) : 0);
  draw_states_line(ctx, runs, scale);
  if (height.with_outside) outside_line(ctx, scale);
  ImPlot::PushPlotClipRect();
  ctx.canvas.draw_on(ImPlot::GetPlotDrawList());
  const analysis::MemoryModel& model = app.run->summary().memory_model;
  if (app.memory_pool == ev::MemoryPool::device && model.bytes_per_rank > 0) draw_expression(ctx, model);
  draw_peak(ctx, peak);
  draw_times(ctx, range, from_ns);
  hover(ctx, scale);
  if (logarithmic) {
    const ImVec2 at = ImPlot::GetPlotPos();
    const float width = ImPlot::GetPlotSize().x - 8;
    constexpr const char* kWhole = "logarithmic: heights are not proportional to sizes";
    const bool fits = ctx.canvas.width(kWhole, Font::small) <= width;
    ctx.canvas.text_on_plate({at.x + 4, at.y + 2, width, 14}, fits ? kWhole : "logarithmic",
                             ctx.colors().text, ctx.colors().panel, Font::small);
  }
  ImPlot::PopPlotClipRect();
  const bool menu = plot_menu_clicked();
  end_plot(ctx);
  ctx.canvas.draw_on(ImGui::GetWindowDrawList());
  keys(ctx, room, scale, menu);
  if (begin != static_cast<double>(range.begin_ns) || end != static_cast<double>(range.end_ns)) {
    memory_axis(app).set({std::llround(begin), std::llround(end)}, data.end_ns());
    if (app.timeline.view.memory_linked)
      app.follow = false;
    else
      app.memory_by_hand = true;
  }
}

}  // namespace shardscope::gui
