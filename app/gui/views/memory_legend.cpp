#include "app/gui/views/memory_legend.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "app/analysis/outside_memory.h"
#include "app/gui/model/bucket_note.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/store/model_states.h"

namespace shardscope::gui {
namespace {

constexpr float kAmount = 60;   ///< "1.58 MiB" and a space before it
constexpr float kNarrow = 172;  ///< without the column of the peak
constexpr float kBesidePanel = kNarrow + kAmount;
constexpr float kRoomForPeak = 500;  ///< of the panel: more than half of it is the curve's
constexpr float kLegendLine = 18;
constexpr float kAroundName = 28;  ///< of a name below the curve: square before, space after

void draw_amount(Context& ctx, const Rect& place, std::int64_t value) {
  const Palette& c = ctx.colors();
  ctx.canvas.text_in(place, value == 0 ? "0 B" : bytes(value).text(), value == 0 ? c.muted : c.text,
                     Font::mono_small, Align::right);
}

std::string outside_tip(const Context& ctx) {
  const store::Store& data = ctx.app.run->store();
  return data.has_tables() ? "In no category: " + std::string(analysis::outside_contents(data.tables())) +
                                 ". Sampled between steps."
                           : "In no category. Sampled between steps.";
}

/// Memory outside of the runtime's arenas; missing without a driver to ask.
void draw_outside(Context& ctx, Rect row, bool with_peak, const store::MemorySample& peak) {
  const Palette& c = ctx.colors();
  const std::span<const OutsideMemory> samples = ctx.app.run->index().outside(ctx.app.memory_rank);
  const auto amount = [&](const Rect& place, std::optional<std::int64_t> value) {
    ctx.canvas.text_in(place, value ? bytes(*value).text() : kMissing, value ? c.text : c.muted,
                       Font::mono_small, Align::right);
  };
  const Rect whole = row;
  if (with_peak) amount(row.take_right(kAmount), outside_at(samples, peak.at_ns));
  amount(row.take_right(kAmount), outside_at(samples, ctx.app.now_ns()));
  ctx.canvas.text_in(row, "outside the runtime", c.muted, Font::small);
  if (ctx.hovered(whole)) {
    ctx.tip(samples.empty()
                ? "Not known: there is no driver that counts this device's memory, or nothing was sampled."
                : outside_tip(ctx));
  }
}

}  // namespace

Rgb shade(const Palette& colors, ev::MemoryCategory category) {
  const Rgb base = colors.of(meaning_of(category));
  switch (category) {
    case ev::MemoryCategory::momentum:
    case ev::MemoryCategory::param_secondary:
    case ev::MemoryCategory::grad_full:
      return mix(base, colors.panel, 0.22F);
    case ev::MemoryCategory::variance:
    case ev::MemoryCategory::gather_buffer:
      return mix(base, colors.panel, 0.42F);
    case ev::MemoryCategory::quantization:
      return mix(base, colors.text, 0.25F);
    case ev::MemoryCategory::input:
      return mix(base, colors.text, 0.20F);
    case ev::MemoryCategory::temporary:
      return mix(base, colors.panel, 0.25F);
    case ev::MemoryCategory::other:
      return mix(base, colors.panel, 0.50F);
    default:
      return base;
  }
}

bool MemoryLegend::toggled(Context& ctx, const Rect& place, ev::MemoryCategory category) {
  const Palette& c = ctx.colors();
  const bool off = hidden_.contains(category);
  const Rect mark{place.x, place.y + (place.h - 10) / 2, 10, 10};
  if (off)
    ctx.canvas.outline(mark, shade(c, category), 1, 1, 2);
  else
    ctx.canvas.fill(mark, shade(c, category), 1, 2);
  const Context::KeyItem key = ctx.key_item(place, word(category));
  if (!ctx.clicked(place) && !key.chosen) return off;
  if (off)
    hidden_.erase(category);
  else
    hidden_.insert(category);
  return !off;
}

float MemoryLegend::width_beside(float panel) { return panel > kRoomForPeak ? kBesidePanel : kNarrow; }

void MemoryLegend::draw_beside(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used,
                               const store::MemorySample& now, const store::MemorySample& peak) {
  const Palette& c = ctx.colors();
  const store::Store& data = ctx.app.store();
  const bool with_peak = room.w > kNarrow;
  Rect head = room.take_top(kLegendLine);
  if (with_peak) ctx.canvas.text_in(head.take_right(kAmount), "at peak", c.muted, Font::small, Align::right);
  const bool known = data.is_known(ctx.app.memory_rank, ctx.app.now_ns());
  const Rect now_head = head.take_right(kAmount);
  ctx.canvas.text_in(now_head, known ? "now" : "at most", c.muted, Font::small, Align::right);
  if (!known && ctx.hovered(now_head)) ctx.tip(not_kept_text() + ": the highest value around this time");
  const auto line = [&](std::string_view label, std::int64_t at_now, std::int64_t at_peak, float indent = 0,
                        std::string_view note = "") {
    Rect row = room.take_top(kLegendLine);
    row.take_left(indent);
    if (with_peak) draw_amount(ctx, row.take_right(kAmount), at_peak);
    draw_amount(ctx, row.take_right(kAmount), at_now);
    const bool cut = ctx.canvas.text_in(row, label, c.text, Font::small);
    if (!ctx.hovered(row)) return;
    if (!note.empty()) ctx.tip(note);
    if (note.empty() && cut) ctx.tip(label);
  };
  constexpr float kIndent = 16;  // after the square
  const bool device = ctx.app.memory_pool == ev::MemoryPool::device;
  const std::vector<ev::MemoryCategory> shown =
      largest_categories(used, now, peak, static_cast<int>((room.h - (device ? 79 : 61)) / kLegendLine));
  std::int64_t rest_now = now.total();
  std::int64_t rest_at_peak = peak.total();
  for (auto category = shown.rbegin(); category != shown.rend(); ++category) {
    toggled(ctx, {room.x, room.y, room.w, kLegendLine}, *category);
    const std::int64_t at_now = now.bytes[static_cast<std::size_t>(*category)];
    const std::int64_t at_peak = peak.bytes[static_cast<std::size_t>(*category)];
    const std::string note =
        *category == ev::MemoryCategory::reduce_bucket && data.has_tables() ? bucket_note(data.tables()) : "";
    line(word(*category), at_now, at_peak, kIndent, note);
    rest_now -= at_now;
    rest_at_peak -= at_peak;
  }
  if (shown.size() < used.size())
    line(std::to_string(used.size() - shown.size()) + " smaller", rest_now, rest_at_peak, kIndent);
  room.take_top(4);
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  room.take_top(3);
  line("total", now.total(), peak.total());
  if (device) draw_outside(ctx, room.take_top(kLegendLine), with_peak, peak);
  const std::int32_t stage = stage_of(data);
  line("model states", store::model_state_bytes(now, stage), store::model_state_bytes(peak, stage));
  const auto most = model_state_peak(data, ctx.app.memory_rank, ctx.app.memory_pool);
  if (most && room.h >= kLegendLine) {
    const Rect row = room.take_top(kLegendLine);
    ctx.canvas.text_in(row, most->text(), c.muted, Font::small);
    if (ctx.hovered(row)) ctx.tip(most->text() + " at " + timestamp(most->at_ns, 1'000'000));
  }
}

float MemoryLegend::height_below(const Canvas& canvas, float width,
                                 const std::vector<ev::MemoryCategory>& used) {
  float rows = 1;
  float left = width;
  for (const ev::MemoryCategory category : used) {
    const float w = canvas.width(word(category), Font::small) + kAroundName;
    if (left < w) {
      ++rows;
      left = width;
    }
    left -= w;
  }
  return kLegendLine * rows;
}

void MemoryLegend::draw_below(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used) {
  Rect line = room.take_top(kLegendLine);
  for (auto category = used.rbegin(); category != used.rend(); ++category) {
    const std::string label = word(*category);
    const float w = ctx.canvas.width(label, Font::small) + kAroundName;
    if (line.w < w) {
      if (room.h < kLegendLine) return;
      line = room.take_top(kLegendLine);
    }
    const Rect place = line.take_left(w);
    const bool off = toggled(ctx, place, *category);
    ctx.canvas.text_in({place.x + 16, place.y, place.w - 16, place.h}, label,
                       off ? ctx.colors().muted : ctx.colors().text, Font::small);
  }
}

}  // namespace shardscope::gui
