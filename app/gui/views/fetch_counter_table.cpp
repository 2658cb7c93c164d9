#include "app/gui/views/fetch_counter_table.h"

#include <algorithm>
#include <array>
#include <string>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kPerDirection = plan::kFetchCounters / 2;

/// A counter with one value for forward and one for backward.
struct Row {
  const char* name;  ///< DeepSpeed's name without the direction
  const char* unit;  ///< of its elements
  const char* says;
};
constexpr std::array<Row, kPerDirection> kRows{{
    {"fetch_submit", "shard",
     "Fetches that had to gather: how many, and the elements of this rank's shards in them"},
    {"fetch_wait", "shard",
     "Fetches: how many, and this rank's shard elements of the parameters whose gather they waited for"},
    {"prefetch_submit", "whole", "Prefetches: how many, and the elements of the whole parameters in them"},
    {"all_gather", "whole",
     "Gathers of fetches and of prefetches: how many, and the elements of the whole parameters in them"},
}};

void paragraph(Context& ctx, Rect& room, const std::string& text) {
  const float h = ctx.canvas.paragraph_height(room.w, text, Font::small);
  ctx.canvas.paragraph({room.x, room.y, room.w, h + 2}, text, ctx.colors().muted, Font::small);
  room.take_top(h + 4);
}

/// Cells of one line: label, unit, then count and elements for forward and for backward.
struct Columns {
  Rect label, unit, cells[4];
};
Columns columns_of(Rect line, float width) {
  line.w = width;
  const float narrow = std::clamp(width * 0.11F, 36.0F, 56.0F);
  const float wide = std::clamp(width * 0.17F, 56.0F, 84.0F);
  Columns out;
  out.cells[3] = line.take_right(wide);
  out.cells[2] = line.take_right(narrow);
  line.take_right(8);
  out.cells[1] = line.take_right(wide);
  out.cells[0] = line.take_right(narrow);
  line.take_right(8);
  out.unit = line.take_right(std::min(40.0F, line.w * 0.3F));
  out.label = line;
  return out;
}

std::string exact(const char* direction, const plan::FetchCount& counter) {
  return std::string("\n") + direction + ": " + grouped(counter.count) + ", " + grouped(counter.elems) +
         " elements";
}

}  // namespace

std::string fetch_counter_heading(const std::optional<analysis::MicroStepCounters>& counters,
                                  std::uint32_t rank) {
  const std::string place = " on rank " + std::to_string(rank);
  if (!counters) return "What fetches counted" + place;
  return "What the fetches of micro-step " + std::to_string(counters->micro_step) + " counted" + place;
}

float draw_fetch_counters(Context& ctx, Rect room,
                          const std::optional<analysis::MicroStepCounters>& counters) {
  const float top = room.y;
  const Palette& c = ctx.colors();
  if (!counters) {
    paragraph(ctx, room,
              "Nothing counted up to here: the counters arrive when the backward of a micro-step has ended.");
    return room.y - top;
  }
  const float width = std::min(room.w, 460.0F);  // keeps figures near their labels
  const auto both = [](const Rect& a, const Rect& b) { return Rect{a.x, a.y, b.right() - a.x, a.h}; };
  const Columns head = columns_of(room.take_top(kTextLine), width);
  ctx.canvas.text_in(both(head.cells[0], head.cells[1]), "forward", c.text, Font::small, Align::right);
  ctx.canvas.text_in(both(head.cells[2], head.cells[3]), "backward", c.text, Font::small, Align::right);
  const Columns names = columns_of(room.take_top(kTextLine), width);
  for (std::size_t i = 0; i < 4; ++i) {
    ctx.canvas.text_in(names.cells[i], i % 2 == 0 ? "count" : "elements", c.muted, Font::small, Align::right);
  }
  ctx.canvas.horizontal(names.label.x, names.label.bottom() - 1, width, c.line);
  for (std::size_t i = 0; i < kPerDirection; ++i) {
    const Rect line = room.take_top(kTextLine);
    const Columns at = columns_of(line, width);
    const plan::FetchCount& forward = counters->counts[i];
    const plan::FetchCount& backward = counters->counts[kPerDirection + i];
    if (ctx.hovered(line)) {
      ctx.canvas.fill({line.x, line.y, width, line.h}, c.raised, 0.7F);
      ctx.tip(std::string(kRows[i].says) + exact("forward", forward) + exact("backward", backward));
    }
    ctx.canvas.text_in(at.label, kRows[i].name, c.muted, Font::mono_small);
    ctx.canvas.text_in(at.unit, kRows[i].unit, c.muted, Font::small);
    const plan::FetchCount* const both_counts[2] = {&forward, &backward};
    for (std::size_t side = 0; side < 2; ++side) {
      const plan::FetchCount& counter = *both_counts[side];
      const Rgb color = counter.count == 0 ? c.muted : c.text;
      ctx.canvas.text_in(at.cells[2 * side], grouped(counter.count), color, Font::mono_small, Align::right);
      ctx.canvas.text_in(at.cells[2 * side + 1], count(static_cast<double>(counter.elems)).text(), color,
                         Font::mono_small, Align::right);
    }
  }
  room.take_top(4);
  paragraph(ctx, room,
            "As DeepSpeed counts: \"shard\" are elements of this rank's shards with padding, \"whole\" those "
            "of whole parameters.");
  return room.y - top;
}

}  // namespace shardscope::gui
