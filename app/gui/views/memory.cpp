// Memory: stacked categories over time of one rank and pool, the peak, the ZeRO expression, and what was
// alive at a time: the peak, now, or the difference of two.
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "app/analysis/missing_reason.h"
#include "app/gui/model/alive_memory.h"
#include "app/gui/model/bucket_note.h"
#include "app/gui/model/format.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/model/stage_memory.h"
#include "app/gui/views/alive_table.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"
#include "app/store/model_states.h"

namespace shardscope::gui {
namespace {

constexpr float kLegendWidth = 264;
constexpr float kNarrowLegend = 196;  ///< without the column of the peak
constexpr float kStackColumn = 2;

/// Categories of one meaning are distinguished by shade.
Rgb shade(const Palette& c, ev::MemoryCategory category) {
  const Rgb base = c.of(meaning_of(category));
  switch (category) {
    case ev::MemoryCategory::momentum:
    case ev::MemoryCategory::param_secondary:
    case ev::MemoryCategory::grad_full:
      return mix(base, c.panel, 0.22F);
    case ev::MemoryCategory::variance:
    case ev::MemoryCategory::gather_buffer:
      return mix(base, c.panel, 0.42F);
    case ev::MemoryCategory::quantization:
      return mix(base, c.text, 0.25F);
    case ev::MemoryCategory::input:
      return mix(base, c.text, 0.20F);
    case ev::MemoryCategory::temporary:
      return mix(base, c.panel, 0.25F);
    case ev::MemoryCategory::other:
      return mix(base, c.panel, 0.50F);
    default:
      return base;
  }
}

enum class Below : std::uint8_t { nothing, peak, now, difference, stages };

class MemoryView final : public View {
 public:
  std::string_view name() const override { return "memory"; }
  std::string_view title() const override { return "Memory"; }
  bool analysed() const override { return true; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  using Category = ev::MemoryCategory;
  void plot(Context& ctx, const Rect& room, const store::MemorySample& peak);
  void stack(Context& ctx, const std::vector<StackRun>& runs, const TimeScale& scale, std::int64_t limit);
  void states_line(Context& ctx, const std::vector<StackRun>& runs, const TimeScale& scale);
  void outside_line(Context& ctx, const TimeScale& scale, std::int64_t limit);
  void peak_mark(Context& ctx, const store::MemorySample& peak);
  void hover(Context& ctx, const TimeScale& scale, const std::vector<Category>& used);
  void legend(Context& ctx, Rect room, const std::vector<Category>& used, const store::MemorySample& now,
              const std::optional<store::MemorySample>& peak);
  void legend_line(Context& ctx, Rect room, const std::vector<Category>& used);
  void outside_row(Context& ctx, Rect row, float number_width, bool with_peak,
                   const std::optional<store::MemorySample>& peak);
  void alive(Context& ctx, Rect room, const store::MemorySample& peak);
  static void stages(Context& ctx, Rect room);
  bool toggled(Context& ctx, const Rect& place, Category category);

  std::vector<store::MemorySample> columns_;
  std::set<Category> hidden_;  ///< switched off in the legend: not in the stack, nor in its sums
  std::int32_t stage_ = 3;
  Below below_ = Below::nothing;
  std::optional<std::int64_t> marked_ns_;  ///< the other time of a difference
  AliveTable table_;
  struct AliveOf {
    const Session* run = nullptr;
    std::uint32_t rank = 0;
    ev::MemoryPool pool{};
    Below what = Below::nothing;
    std::int64_t at_ns = 0, before_ns = 0;
    friend bool operator==(const AliveOf&, const AliveOf&) = default;
  };
  AliveOf alive_of_;
  std::vector<AliveNode> nodes_;
};

void MemoryView::header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const auto pools = used_pools(app.store(), app.memory_rank);
  if (!pools.empty() && std::ranges::find(pools, app.memory_pool) == pools.end())
    app.memory_pool = pools.front();
  const std::string label = "rank " + std::to_string(app.memory_rank);
  Rect place;
  if (ctx.menu_button_right(room, label, place, app.store().ranks().size() > 1)) {
    std::vector<OverlayItem> items;
    for (const store::RankRow& rank : app.store().ranks()) {
      const std::uint32_t id = rank.rank;
      const auto peak = app.store().memory_peak(id, app.memory_pool);
      items.push_back({"rank " + std::to_string(id), peak ? "peak " + bytes(peak->total()).text() : "", true,
                       id == app.memory_rank, [&app, id] { app.memory_rank = id; }});
    }
    ctx.menu(place, std::move(items));
  }
  if (pools.size() > 1 && room.w > 220) {
    std::vector<std::string> labels;
    int chosen = 0;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      labels.emplace_back(word(pools[i]));
      if (pools[i] == app.memory_pool) chosen = static_cast<int>(i);
    }
    app.memory_pool = pools[static_cast<std::size_t>(ctx.choice_right(room, labels, chosen))];
  }
  if (room.w > 260) {
    below_ = static_cast<Below>(ctx.choice_right(
        room, {"curve", "at the peak", "now", "difference", "stages"}, static_cast<int>(below_)));
  }
}

/// A square and a name that switch a category off and on again.
bool MemoryView::toggled(Context& ctx, const Rect& place, Category category) {
  const Palette& c = ctx.colors();
  const bool off = hidden_.contains(category);
  const Rect mark{place.x, place.y + (place.h - 10) / 2, 10, 10};
  if (off)
    ctx.canvas.outline(mark, shade(c, category), 1, 1, 2);
  else
    ctx.canvas.fill(mark, shade(c, category), 1, 2);
  if (!ctx.clicked(place)) return off;
  if (off)
    hidden_.erase(category);
  else
    hidden_.insert(category);
  return !off;
}

void MemoryView::legend(Context& ctx, Rect room, const std::vector<Category>& used,
                        const store::MemorySample& now, const std::optional<store::MemorySample>& peak) {
  const Palette& c = ctx.colors();
  constexpr float kNumber = 68;
  const bool with_peak = room.w > kNarrowLegend;
  Rect head = room.take_top(18);
  if (with_peak) ctx.canvas.text_in(head.take_right(kNumber), "at peak", c.muted, Font::small, Align::right);
  const bool known = ctx.app.store().is_known(ctx.app.memory_rank, ctx.app.now_ns());
  const Rect now_head = head.take_right(kNumber);
  ctx.canvas.text_in(now_head, known ? "now" : "at most", c.muted, Font::small, Align::right);
  if (!known && ctx.hovered(now_head)) ctx.tip(not_kept_text() + ": the most that was held about now");
  const auto amount = [&](const Rect& where, std::int64_t value) {
    Rect place = where;
    if (value == 0) {
      ctx.canvas.text_in(place, "0 B", c.muted, Font::mono_small, Align::right);
      return;
    }
    ctx.canvas.text_in(place, bytes(value).text(), c.text, Font::mono_small, Align::right);
  };
  const auto line = [&](std::string_view label, std::int64_t at_now, std::optional<std::int64_t> at_peak,
                        std::string_view note = "") {
    Rect row = room.take_top(18);
    if (with_peak) {
      const Rect place = row.take_right(kNumber);
      if (at_peak) amount(place, *at_peak);
    }
    amount(row.take_right(kNumber), at_now);
    const bool cut = ctx.canvas.text_in(row, label, c.text, Font::small);
    if (!ctx.hovered(row)) return;
    if (!note.empty()) ctx.tip(note);
    if (note.empty() && cut) ctx.tip(label);
  };
  const auto indented = [&](std::string_view label, std::int64_t at_now, std::optional<std::int64_t> at_peak,
                            std::string_view note = "") {
    const Rect saved = room;
    room.x += 16;
    room.w -= 16;
    line(label, at_now, at_peak, note);
    room.x = saved.x;
    room.w = saved.w;
  };
  const auto at_peak = [&](ev::MemoryCategory category) {
    return peak ? std::optional(peak->bytes[static_cast<std::size_t>(category)]) : std::nullopt;
  };
  const bool device = ctx.app.memory_pool == ev::MemoryPool::device;
  const std::vector<ev::MemoryCategory> shown =
      largest_categories(used, now, peak, static_cast<int>((room.h - (device ? 79 : 61)) / 18));
  std::int64_t rest_now = now.total();
  std::optional<std::int64_t> rest_at_peak = peak ? std::optional(peak->total()) : std::nullopt;
  for (auto category = shown.rbegin(); category != shown.rend(); ++category) {
    toggled(ctx, {room.x, room.y, room.w, 18}, *category);
    const std::int64_t at_now = now.bytes[static_cast<std::size_t>(*category)];
    const std::string note = *category == ev::MemoryCategory::reduce_bucket && ctx.app.store().has_tables()
                                 ? bucket_note(ctx.app.store().tables())
                                 : "";
    indented(word(*category), at_now, at_peak(*category), note);
    rest_now -= at_now;
    if (rest_at_peak) *rest_at_peak -= *at_peak(*category);
  }
  if (shown.size() < used.size())
    indented(std::to_string(used.size() - shown.size()) + " smaller", rest_now, rest_at_peak);
  room.take_top(4);
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  room.take_top(3);
  line("total", now.total(), peak ? std::optional(peak->total()) : std::nullopt);
  if (device) outside_row(ctx, room.take_top(18), kNumber, with_peak, peak);
  line("model states", store::model_state_bytes(now, stage_),
       peak ? std::optional(store::model_state_bytes(*peak, stage_)) : std::nullopt);
  const auto most = model_state_peak(ctx.app.store(), ctx.app.memory_rank, ctx.app.memory_pool);
  if (most && room.h >= 18) {
    const Rect row = room.take_top(18);
    ctx.canvas.text_in(row, most->text(), c.muted, Font::small);
    if (ctx.hovered(row)) ctx.tip(most->text() + " at " + timestamp(most->at_ns, 1'000'000));
  }
}

/// Names and colours in rows under the plot, where there is no room beside it.
void MemoryView::legend_line(Context& ctx, Rect room, const std::vector<Category>& used) {
  Rect line = room.take_top(18);
  for (auto category = used.rbegin(); category != used.rend(); ++category) {
    const std::string label = word(*category);
    const float w = ctx.canvas.width(label, Font::small) + 28;
    if (line.w < w) {
      if (room.h < 18) return;
      line = room.take_top(18);
    }
    const Rect place = line.take_left(w);
    const bool off = toggled(ctx, place, *category);
    ctx.canvas.text_in({place.x + 16, place.y, place.w - 16, place.h}, label,
                       off ? ctx.colors().muted : ctx.colors().text, Font::small);
  }
}

/// What the driver counts beyond the runtime's arenas; missing where there is no driver to ask.
void MemoryView::outside_row(Context& ctx, Rect row, float number_width, bool with_peak,
                             const std::optional<store::MemorySample>& peak) {
  const Palette& c = ctx.colors();
  const std::span<const OutsideMemory> samples = ctx.app.run->index().outside(ctx.app.memory_rank);
  const auto amount = [&](const Rect& place, std::optional<std::int64_t> value) {
    ctx.canvas.text_in(place, value ? bytes(*value).text() : kMissing, value ? c.text : c.muted,
                       Font::mono_small, Align::right);
  };
  const Rect whole = row;
  if (with_peak) {
    amount(row.take_right(number_width), peak ? outside_at(samples, peak->at_ns) : std::nullopt);
  }
  amount(row.take_right(number_width), outside_at(samples, ctx.app.now_ns()));
  ctx.canvas.text_in(row, "outside the runtime", c.muted, Font::small);
  if (ctx.hovered(whole)) {
    ctx.tip(samples.empty()
                ? "Not known: there is no driver that counts this device's memory, or nothing was sampled."
                : "The driver's figure for the device minus the runtime's arenas: context, kernels, "
                  "libraries, other processes. Sampled between steps.");
  }
}

void MemoryView::stack(Context& ctx, const std::vector<StackRun>& runs, const TimeScale& scale,
                       std::int64_t limit) {
  const Palette& c = ctx.colors();
  std::vector<double> x;
  for (const StackRun& run : runs) {
    x.push_back(
        static_cast<double>(scale.time_of(scale.left + static_cast<float>(run.first) * kStackColumn)));
    x.push_back(static_cast<double>(
        std::min(limit, scale.time_of(scale.left + static_cast<float>(run.last) * kStackColumn))));
  }
  std::vector<double> below(x.size(), 0);
  std::vector<double> above(x.size(), 0);
  for (const Category category : stack_order()) {
    if (hidden_.contains(category)) continue;
    bool any = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::int64_t value = runs[i].bytes[static_cast<std::size_t>(category)];
      any |= value > 0;
      above[2 * i] = above[2 * i + 1] = below[2 * i] + static_cast<double>(std::max<std::int64_t>(0, value));
    }
    if (!any) continue;
    ImPlotSpec spec;
    spec.FillColor = ink(shade(c, category));
    spec.LineColor = spec.FillColor;
    ImPlot::PlotShaded(word(category), x.data(), below.data(), above.data(), static_cast<int>(x.size()),
                       spec);
    below = above;
  }
}

/// The line that ZeRO's expression is about: the sum of the model states.
void MemoryView::states_line(Context& ctx, const std::vector<StackRun>& runs, const TimeScale& scale) {
  std::vector<double> x;
  std::vector<double> y;
  for (const StackRun& run : runs) {
    store::MemorySample sample;
    sample.bytes = run.bytes;
    const auto value = static_cast<double>(store::model_state_bytes(sample, stage_));
    for (const std::size_t at : {run.first, run.last}) {
      x.push_back(static_cast<double>(scale.time_of(scale.left + static_cast<float>(at) * kStackColumn)));
      y.push_back(value);
    }
  }
  ImPlotSpec spec;
  spec.LineColor = ink(ctx.colors().text, 0.9F);
  ImPlot::PlotLine("model states", x.data(), y.data(), static_cast<int>(x.size()), spec);
}

/// The driver's figure, dashed above the stack: arenas and what is outside of them.
void MemoryView::outside_line(Context& ctx, const TimeScale& scale, std::int64_t limit) {
  if (ctx.app.memory_pool != ev::MemoryPool::device) return;
  const std::span<const OutsideMemory> samples = ctx.app.run->index().outside(ctx.app.memory_rank);
  if (samples.empty()) return;
  std::vector<double> x;
  std::vector<double> y;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::int64_t at = scale.time_of(scale.left + (static_cast<float>(i) + 0.5F) * kStackColumn);
    const auto outside = outside_at(samples, at);
    x.push_back(static_cast<double>(at));
    y.push_back(outside && at <= limit && i % 3 != 2 ? static_cast<double>(columns_[i].total() + *outside)
                                                     : std::numeric_limits<double>::quiet_NaN());
  }
  ImPlotSpec spec;
  spec.LineColor = ink(ctx.colors().muted);
  ImPlot::PlotLine("with what the driver counts outside", x.data(), y.data(), static_cast<int>(x.size()),
                   spec);
}

/// The peak of the run, marked where it is in view.
void MemoryView::peak_mark(Context& ctx, const store::MemorySample& peak) {
  const Palette& c = ctx.colors();
  const TimeRange range = ctx.app.time.range();
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

void MemoryView::hover(Context& ctx, const TimeScale& scale, const std::vector<Category>& used) {
  AppState& app = ctx.app;
  if (!ImPlot::IsPlotHovered() || columns_.empty()) return;
  const ImVec2 at = ImPlot::GetPlotPos();
  ctx.canvas.vertical(ctx.pointer.x, at.y, ImPlot::GetPlotSize().y, ctx.colors().muted, 0.5F);
  const auto column = static_cast<std::size_t>(
      std::clamp((ctx.pointer.x - scale.left) / kStackColumn, 0.0F, static_cast<float>(columns_.size() - 1)));
  Details details;
  details.title = bytes(columns_[column].total()).text();
  details.subtitle = "rank " + std::to_string(app.memory_rank) + ", " + word(app.memory_pool) +
                     ", highest within this pixel";
  for (auto category = used.rbegin(); category != used.rend(); ++category) {
    const std::int64_t value = columns_[column].bytes[static_cast<std::size_t>(*category)];
    if (value != 0) details.fields.push_back({word(*category), bytes(value).text(), "", ""});
  }
  details.fields.push_back(
      {"model states", bytes(store::model_state_bytes(columns_[column], stage_)).text(), "", ""});
  details.fields.push_back({"time", timestamp(scale.time_of(ctx.pointer.x), 10'000), "", ""});
  ctx.tip(details);
  const std::int64_t end = app.store().end_ns();
  if (plot_clicked()) app.jump_to(std::clamp<std::int64_t>(scale.time_of(ctx.pointer.x), 0, end));
}

void MemoryView::plot(Context& ctx, const Rect& room, const store::MemorySample& peak) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const store::Store& data = app.store();
  const std::int64_t limit = data.end_ns();
  const bool device = app.memory_pool == ev::MemoryPool::device;
  const analysis::MemoryModel& model = app.run->summary().memory_model;
  const double predicted = device ? static_cast<double>(model.bytes_per_rank) : 0;
  std::int64_t most_outside = 0;
  if (device) {
    for (const OutsideMemory& sample : app.run->index().outside(app.memory_rank))
      most_outside = std::max(most_outside, sample.bytes);
  }
  // Where what is outside dwarfs the rest (a process of PyTorch, a small model), its line would flatten the
  // stack; it stands in the legend.
  const double counted = std::max({static_cast<double>(peak.total()), predicted, 1.0});
  const bool outside_fits = static_cast<double>(most_outside) <= 3 * counted;
  const double full =
      1.12 * std::max(counted, static_cast<double>(outside_fits ? peak.total() + most_outside : 0));
  if (!begin_plot(ctx, "##memory over time", room, ImPlotFlags_NoLegend | ImPlotFlags_NoMenus)) return;
  const TimeRange range = app.time.range();
  double begin = static_cast<double>(range.begin_ns);
  double end = static_cast<double>(range.end_ns);
  constexpr ImPlotAxisFlags kFlags = ImPlotAxisFlags_NoMenus | ImPlotAxisFlags_NoSideSwitch;
  ImPlot::SetupAxes(nullptr, nullptr, kFlags, kFlags | ImPlotAxisFlags_LockMin);
  ImPlot::SetupAxisLinks(ImAxis_X1, &begin, &end);
  ImPlot::SetupAxisZoomConstraints(ImAxis_X1, static_cast<double>(TimeAxis::kShortest), 1e18);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, full, ImPlotCond_Always);
  const TimeScale wide{range, room.x, room.w};
  std::vector<double> at;
  std::vector<std::string> labels;
  for (const Tick& tick : time_ticks(wide, 100)) {
    at.push_back(static_cast<double>(tick.at_ns));
    // Centred at its tick a label would reach over the edge.
    const float half = ctx.canvas.width(tick.label, Font::mono_small) / 2;
    labels.push_back(wide.x_of(tick.at_ns) + half > room.right() ? std::string() : tick.label);
  }
  std::vector<double> values = value_ticks(full, room.h > 160 ? 4 : 2, true);
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
  const ImVec2 place = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  columns_.assign(static_cast<std::size_t>(std::max(1.0F, std::floor(size.x / kStackColumn))), {});
  data.memory_columns(app.memory_rank, app.memory_pool, range.begin_ns, range.end_ns, columns_);
  const TimeScale scale{range, place.x, static_cast<float>(columns_.size()) * kStackColumn};
  const std::vector<StackRun> runs = stack_runs(columns_);
  stack(ctx, runs, scale, limit);
  states_line(ctx, runs, scale);
  if (outside_fits) outside_line(ctx, scale, limit);
  ImPlot::PushPlotClipRect();
  ctx.canvas.draw_on(ImPlot::GetPlotDrawList());
  if (predicted > 0) {
    const float y = ImPlot::PlotToPixels(0, predicted).y;
    ctx.canvas.dashed(place.x, y, size.x, c.text);
    const std::string label = model.expression + " = " + bytes(model.bytes_per_rank).text();
    const float w = ctx.canvas.width(label, Font::small) + 8;
    const Rect plate{place.x + size.x - w - 4, y - 17 < place.y ? y + 2 : y - 17, w, 15};
    ctx.canvas.fill(plate, c.panel, 0.8F, 2);
    ctx.canvas.text_in(plate.inset(4, 0), label, c.text, Font::small);
  }
  peak_mark(ctx, peak);
  if (app.cursor_ns && range.contains(*app.cursor_ns)) {
    ctx.canvas.vertical(ImPlot::PlotToPixels(static_cast<double>(*app.cursor_ns), 0).x, place.y, size.y,
                        c.accent);
  }
  if (marked_ns_ && below_ == Below::difference && range.contains(*marked_ns_)) {
    const float x = ImPlot::PlotToPixels(static_cast<double>(*marked_ns_), 0).x;
    ctx.canvas.vertical(x, place.y, size.y, c.of(Meaning::reduce));
    ctx.canvas.text(x + 4, place.y + 2, "from here", c.of(Meaning::reduce), Font::small);
  }
  const std::vector<Category> used = used_categories(columns_);
  hover(ctx, scale, used);
  ImPlot::PopPlotClipRect();
  end_plot(ctx);
  ctx.canvas.draw_on(ImGui::GetWindowDrawList());
  if (begin != static_cast<double>(range.begin_ns) || end != static_cast<double>(range.end_ns)) {
    app.time.set({std::llround(begin), std::llround(end)}, limit);
    app.follow = false;
  }
}

/// Stages 0 to 3 for this model and world, on one scale; where a run was measured, its peak as a mark.
void MemoryView::stages(Context& ctx, Rect room) {
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.section(room, "Model states of one rank, stages 0 to 3: predicted, and the measured peak as a mark");
  const auto rows = stage_memory(app.store(), app.run->summary(), app.other ? &app.other->store() : nullptr,
                                 app.other ? &app.other->summary() : nullptr);
  double most = 1;
  for (const StageMemory& row : rows)
    most = std::max({most, row.total(), static_cast<double>(row.measured.value_or(0))});
  const auto text = [](double value) { return bytes(static_cast<std::int64_t>(value)).text(); };
  for (const StageMemory& row : rows) {
    if (room.h < 26) return;
    Rect line = room.take_top(28);
    const bool own = app.store().has_tables() && row.stage == app.store().tables().stage;
    ctx.canvas.text_in(line.take_left(150), "stage " + std::to_string(row.stage) + ": " + row.expression,
                       own ? c.text : c.muted, Font::small);
    ctx.canvas.text_in(line.take_right(90),
                       row.measured ? text(static_cast<double>(*row.measured)) : "not measured",
                       row.measured ? c.text : c.muted, Font::mono_small, Align::right);
    ctx.canvas.text_in(line.take_right(90), text(row.total()), c.text, Font::mono_small, Align::right);
    line.take_right(10);
    const Rect bar = line.inset(0, 6);
    stacked_bar(ctx, bar,
                {{"parameters", row.params, c.of(Meaning::compute), false},
                 {"gradients", row.gradients, c.of(Meaning::reduce), false},
                 {"optimizer states", row.optimizer, c.of(Meaning::optimizer), false}},
                most, text);
    if (row.measured) {
      const float x = bar.x + static_cast<float>(static_cast<double>(*row.measured) / most) * bar.w;
      ctx.canvas.vertical(x, bar.y - 3, bar.h + 6, c.text, 1, 2);
    }
  }
}

void MemoryView::alive(Context& ctx, Rect room, const store::MemorySample& peak) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  room.take_top(6);
  Rect head = room.take_top(24);
  const std::int64_t now = app.now_ns();
  if (below_ == Below::difference) {
    if (ctx.button_right(head, "Mark this time", true, Context::Look::plain,
                         "The difference is taken from this time to where the cursor is set next"))
      marked_ns_ = now;
    if (!marked_ns_) marked_ns_ = 0;
  }
  const AliveOf of{app.run.get(),
                   app.memory_rank,
                   app.memory_pool,
                   below_,
                   below_ == Below::peak ? peak.at_ns : now,
                   below_ == Below::difference ? *marked_ns_ : 0};
  // Of a run that goes on "now" is read when it is paused or looked back at: each time is a replay.
  const bool moves = app.run->live() && below_ != Below::peak && !app.cursor_ns && !app.paused();
  if (of != alive_of_ && !moves) {
    alive_of_ = of;
    const AliveMemory at = alive_memory(app.store(), of.rank, of.pool, of.at_ns);
    nodes_ = below_ == Below::difference
                 ? alive_difference(*app.run, of.rank,
                                    alive_memory(app.store(), of.rank, of.pool, of.before_ns), at)
                 : alive_tree(*app.run, of.rank, at);
  }
  const std::string when = timestamp(of.at_ns, 10'000);
  const std::string title =
      moves                                      ? "Pause the run, or set a time: what is alive is read then"
      : below_ == Below::difference              ? "From " + timestamp(of.before_ns, 10'000) + " to " + when
      : !app.store().is_known(of.rank, of.at_ns) ? not_kept_text() + ": at most, about " + when
      : below_ == Below::peak                    ? "Alive at the peak, " + when
                                                 : "Alive at " + when;
  ctx.canvas.text_in(head, title, c.muted, Font::small);
  if (moves) return;
  if (nodes_.empty()) {
    ctx.canvas.text_in(room.take_top(20), "Nothing", c.muted, Font::small);
    return;
  }
  const auto picked =
      table_.draw(ctx, "##alive", room, nodes_,
                  below_ == Below::difference ? AliveTable::Columns::difference : AliveTable::Columns::alive);
  if (picked) app.jump_to(*picked);
}

void MemoryView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const store::Store& data = app.store();
  stage_ = data.has_tables() ? data.tables().stage : 3;
  const auto peak = data.memory_peak(app.memory_rank, app.memory_pool);
  if (!peak) {
    ctx.empty(room, "No memory events of rank " + std::to_string(app.memory_rank),
              "So far " +
                  analysis::missing_reason(app.run->summary(), "memory events", ev::Detail::params,
                                           ev::Capability::memory) +
                  ".");
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  if (below_ != Below::nothing) {
    const Rect table = room.h > 300 ? room.take_bottom(room.h * 0.52F) : room;
    if (below_ == Below::stages)
      stages(ctx, table);
    else
      alive(ctx, table, *peak);
    if (room.h <= 300) return;
  }
  const store::MemorySample now = data.memory_at(app.memory_rank, app.memory_pool, app.now_ns());
  const std::vector<Category> used = used_categories(columns_);
  Rect side;
  if (room.w > 440 && room.h > 120) {
    side = room.take_right(room.w > 720 ? kLegendWidth : kNarrowLegend);
    room.take_right(16);
  } else if (room.h > 110) {
    float rows = 1;
    float left = room.w;
    for (const Category category : used) {
      const float w = ctx.canvas.width(word(category), Font::small) + 28;
      if (left < w) {
        ++rows;
        left = room.w;
      }
      left -= w;
    }
    legend_line(ctx, room.take_bottom(std::min(18 * rows, room.h * 0.35F)), used);
  }
  plot(ctx, room, *peak);
  if (!side.empty()) legend(ctx, side, used, now, peak);
}

}  // namespace

std::unique_ptr<View> make_memory_view() { return std::make_unique<MemoryView>(); }

}  // namespace shardscope::gui
