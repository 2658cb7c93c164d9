// Memory: stacked categories over time of one rank and pool, the peak, and the ZeRO expression.
#include <algorithm>
#include <cmath>

#include "app/analysis/missing_reason.h"
#include "app/gui/model/bucket_note.h"
#include "app/gui/model/format.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/views/panels.h"
#include "app/store/model_states.h"

namespace shardscope::gui {
namespace {

constexpr float kAxisWidth = 68;
constexpr float kLegendWidth = 264;
constexpr float kNarrowLegend = 196;  ///< without the column of the peak
constexpr float kColumn = 2;

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

class MemoryView final : public View {
 public:
  std::string_view name() const override { return "memory"; }
  std::string_view title() const override { return "Memory"; }
  bool analysed() const override { return true; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  void legend(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used,
              const store::MemorySample& now, const std::optional<store::MemorySample>& peak);
  void outside_row(Context& ctx, Rect row, float number_width, bool with_peak,
                   const std::optional<store::MemorySample>& peak);
  void outside_line(Context& ctx, const Rect& plot, double full, const TimeScale& scale, std::int64_t limit);
  void model_line(Context& ctx, const Rect& plot, double full, const std::vector<StackRun>& runs);

  std::vector<store::MemorySample> columns_;
  std::int32_t stage_ = 3;
};

void MemoryView::header(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const auto pools = used_pools(app.store(), app.memory_rank);
  if (!pools.empty() && std::ranges::find(pools, app.memory_pool) == pools.end())
    app.memory_pool = pools.front();
  if (pools.size() > 1) {
    std::vector<std::string> labels;
    int chosen = 0;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      labels.emplace_back(word(pools[i]));
      if (pools[i] == app.memory_pool) chosen = static_cast<int>(i);
    }
    app.memory_pool = pools[static_cast<std::size_t>(ctx.choice_right(room, labels, chosen))];
  }
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
}

void MemoryView::legend(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used,
                        const store::MemorySample& now, const std::optional<store::MemorySample>& peak) {
  const Palette& c = ctx.colors();
  constexpr float kNumber = 68;
  const bool with_peak = room.w > kNarrowLegend;
  Rect head = room.take_top(18);
  if (with_peak) ctx.canvas.text_in(head.take_right(kNumber), "at peak", c.muted, Font::small, Align::right);
  ctx.canvas.text_in(head.take_right(kNumber), "now", c.muted, Font::small, Align::right);
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
    ctx.canvas.fill({room.x, room.y + 4, 10, 10}, shade(c, *category), 1, 2);
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

/// The driver's figure, dashed above the stack: arenas and what is outside of them.
void MemoryView::outside_line(Context& ctx, const Rect& plot, double full, const TimeScale& scale,
                              std::int64_t limit) {
  if (ctx.app.memory_pool != ev::MemoryPool::device) return;
  const std::span<const OutsideMemory> samples = ctx.app.run->index().outside(ctx.app.memory_rank);
  if (samples.empty()) return;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const float x = plot.x + static_cast<float>(i) * kColumn;
    const std::int64_t at = scale.time_of(x + kColumn / 2);
    const auto outside = outside_at(samples, at);
    if (!outside || at > limit || i % 3 == 2) continue;
    const auto value = static_cast<double>(columns_[i].total() + *outside);
    ctx.canvas.horizontal(x, plot.bottom() - static_cast<float>(value / full) * plot.h, kColumn,
                          ctx.colors().muted);
  }
}

void MemoryView::model_line(Context& ctx, const Rect& plot, double full, const std::vector<StackRun>& runs) {
  const Palette& c = ctx.colors();
  const auto y_of = [&](double value) { return plot.bottom() - static_cast<float>(value / full) * plot.h; };
  // The line that the expression is about: the sum of the model states.
  float last_y = -1;
  for (const StackRun& run : runs) {
    store::MemorySample sample;
    sample.bytes = run.bytes;
    const float y = y_of(static_cast<double>(store::model_state_bytes(sample, stage_)));
    const float x0 = plot.x + static_cast<float>(run.first) * kColumn;
    const float x1 = std::min(plot.right(), plot.x + static_cast<float>(run.last) * kColumn);
    if (last_y >= 0) ctx.canvas.vertical(x0, std::min(y, last_y), std::fabs(y - last_y) + 1, c.text, 0.9F);
    ctx.canvas.horizontal(x0, y, x1 - x0, c.text, 0.9F);
    last_y = y;
  }
  const analysis::MemoryModel& model = ctx.app.run->summary().memory_model;
  if (model.bytes_per_rank <= 0 || ctx.app.memory_pool != ev::MemoryPool::device) return;
  const float y = y_of(static_cast<double>(model.bytes_per_rank));
  if (y < plot.y) return;
  ctx.canvas.dashed(plot.x, y, plot.w, c.text);
  const std::string label = model.expression + " = " + bytes(model.bytes_per_rank).text();
  const float w = ctx.canvas.width(label, Font::small) + 8;
  const float label_y = y - 17 < plot.y ? y + 2 : y - 17;
  const Rect plate{plot.right() - w - 4, label_y, w, 15};
  ctx.canvas.fill(plate, c.panel, 0.8F, 2);
  ctx.canvas.text_in(plate.inset(4, 0), label, c.text, Font::small);
  if (ctx.hovered({plot.x, y - 5, plot.w, 10})) {
    std::string tip = "What ZeRO says the model states take on one rank: " + model.expression + ".";
    if (model.measured_bytes_per_rank) {
      tip += " Measured peak of the model states, rank " + std::to_string(model.measured_rank) + ": " +
             bytes(*model.measured_bytes_per_rank).text();
      if (model.excess_pct) tip += ", " + decimal(*model.excess_pct, 1) + " % more";
    }
    ctx.tip(tip);
  }
}

void MemoryView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
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
  const store::MemorySample now = data.memory_at(app.memory_rank, app.memory_pool, app.now_ns());
  Rect side;
  if (room.w > 440 && room.h > 120) {
    side = room.take_right(room.w > 720 ? kLegendWidth : kNarrowLegend);
    room.take_right(16);
  }
  const Rect ticks_row = room.take_bottom(18);
  Rect axis = room.take_left(kAxisWidth);
  const Rect plot{room.x, room.y + 16, room.w, room.h - 16};
  if (plot.empty()) return;
  columns_.assign(static_cast<std::size_t>(std::max(1.0F, std::floor(plot.w / kColumn))), {});
  const TimeRange range = app.time.range();
  data.memory_columns(app.memory_rank, app.memory_pool, range.begin_ns, range.end_ns, columns_);
  const TimeScale scale{range, plot.x, static_cast<float>(columns_.size()) * kColumn};
  const auto limit = data.end_ns();

  const auto model = static_cast<double>(app.run->summary().memory_model.bytes_per_rank);
  std::int64_t most_outside = 0;
  if (app.memory_pool == ev::MemoryPool::device) {
    for (const OutsideMemory& sample : app.run->index().outside(app.memory_rank))
      most_outside = std::max(most_outside, sample.bytes);
  }
  const double full = 1.08 * std::max({static_cast<double>(peak->total() + most_outside),
                                       app.memory_pool == ev::MemoryPool::device ? model : 0.0, 1.0});
  for (const double value : value_ticks(full, plot.h > 120 ? 4 : 2, true)) {
    const float y = plot.bottom() - static_cast<float>(value / full) * plot.h;
    ctx.canvas.horizontal(plot.x, y, plot.w, c.line, 0.8F);
    ctx.canvas.text_in({axis.x, y - 8, axis.w - 8, 16}, bytes(static_cast<std::int64_t>(value)).text(),
                       c.muted, Font::mono_small, Align::right);
  }
  for (const Tick& tick : time_ticks(scale, 100)) {
    if (scale.x_of(tick.at_ns) + 60 > plot.right()) continue;
    ctx.canvas.text(scale.x_of(tick.at_ns) + 3, ticks_row.y + 2, tick.label, c.muted, Font::mono_small);
    ctx.canvas.vertical(scale.x_of(tick.at_ns), plot.bottom(), 4, c.muted, 0.5F);
  }
  const std::vector<StackRun> runs = stack_runs(columns_);
  {
    const Clip clip(ctx.canvas, plot);
    for (const StackRun& run : runs) {
      const float x0 = plot.x + static_cast<float>(run.first) * kColumn;
      const float x1 = std::min(scale.x_of(limit), plot.x + static_cast<float>(run.last) * kColumn);
      if (x1 <= x0) continue;
      double below = 0;
      for (const ev::MemoryCategory category : stack_order()) {
        const auto value = static_cast<double>(run.bytes[static_cast<std::size_t>(category)]);
        if (value <= 0) continue;
        const float y0 = plot.bottom() - static_cast<float>(below / full) * plot.h;
        const float y1 = plot.bottom() - static_cast<float>((below + value) / full) * plot.h;
        ctx.canvas.fill({x0, y1, x1 - x0, y0 - y1}, shade(c, category));
        below += value;
      }
    }
    model_line(ctx, plot, full, runs);
    outside_line(ctx, plot, full, scale, limit);
  }
  ctx.canvas.horizontal(plot.x, plot.bottom(), plot.w, c.line);
  // The peak of the run, marked where it is in view.
  const float peak_y = plot.bottom() - static_cast<float>(static_cast<double>(peak->total()) / full) * plot.h;
  const std::string peak_text = "peak " + bytes(peak->total()).text();
  const float peak_width = ctx.canvas.width(peak_text, Font::small);
  if (range.contains(peak->at_ns)) {
    const float x = scale.x_of(peak->at_ns);
    ctx.canvas.triangle(x - 4, peak_y - 7, x + 4, peak_y - 7, x, peak_y - 1, c.of(Meaning::trouble));
    const float text_x = x + 8 + peak_width > plot.right() ? x - 8 - peak_width : x + 8;
    ctx.canvas.text(text_x, peak_y - 15, peak_text, c.text, Font::small);
  } else {
    ctx.canvas.text_in({plot.x, plot.y - 16, plot.w, 14},
                       peak_text + " at " + timestamp(peak->at_ns, 1'000'000), c.muted, Font::small,
                       Align::right);
  }
  if (app.cursor_ns && range.contains(*app.cursor_ns))
    ctx.canvas.vertical(scale.x_of(*app.cursor_ns), plot.y, plot.h, c.accent);
  const std::vector<ev::MemoryCategory> used = used_categories(columns_);
  if (!side.empty()) legend(ctx, side, used, now, peak);

  if (!ctx.hovered(plot)) return;
  if (ctx.pointer.wheel != 0) {
    app.time.zoom(std::pow(0.82, static_cast<double>(ctx.pointer.wheel)), scale.time_of(ctx.pointer.x),
                  limit);
    app.follow = false;
  }
  ctx.canvas.vertical(ctx.pointer.x, plot.y, plot.h, c.muted, 0.5F);
  const auto column = static_cast<std::size_t>(std::max(0.0F, (ctx.pointer.x - plot.x) / kColumn));
  if (column < columns_.size()) {
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
    ctx.tip(details);
  }
  if (ctx.pointer.pressed[0]) app.jump_to(std::clamp<std::int64_t>(scale.time_of(ctx.pointer.x), 0, limit));
}

}  // namespace

std::unique_ptr<View> make_memory_view() { return std::make_unique<MemoryView>(); }

}  // namespace shardscope::gui
