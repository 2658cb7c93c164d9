#include "app/gui/views/scheduler_difference.h"

#include <algorithm>
#include <string>

#include "app/gui/model/format.h"
#include "app/gui/model/scheduling_at.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kCards = 200;  ///< more are not read, and each has to be measured

/// Rows of both totals: a label and two columns of figures.
void draw_totals(Context& ctx, Rect& room, const analysis::Scheduling& scheduling) {
  const Palette& c = ctx.colors();
  const float width = std::min(room.w, 460.0F);  // keeps figures near their labels
  const float column = std::clamp(width * 0.27F, 80.0F, 120.0F);
  const auto row = [&](const char* label, const std::string& run, const std::string& other, Rgb color,
                       Font font) {
    Rect line = room.take_top(kTextLine);
    line.w = width;
    ctx.canvas.text_in(line.take_right(column), other, color, font, Align::right);
    ctx.canvas.text_in(line.take_right(column), run, color, font, Align::right);
    if (ctx.canvas.text_in(line, label, c.muted, Font::small) && ctx.hovered(line)) ctx.tip(label);
  };
  const plan::SchedulerTotals& a = scheduling.comparison.first;
  const plan::SchedulerTotals& b = scheduling.comparison.second;
  const auto elems = [](std::int64_t n) { return count(static_cast<double>(n)).text(); };
  row("", std::string(plan::to_string(scheduling.run)) + " (run)", plan::to_string(scheduling.other), c.text,
      Font::small);
  row("gathers", std::to_string(a.gathers), std::to_string(b.gathers), c.text, Font::mono_small);
  row("waited for by their own module", std::to_string(a.on_demand), std::to_string(b.on_demand), c.text,
      Font::mono_small);
  row("elements gathered", elems(a.gathered_elems), elems(b.gathered_elems), c.text, Font::mono_small);
  row("most elements held", elems(a.peak_elems), elems(b.peak_elems), c.text, Font::mono_small);
}

void paragraph(Context& ctx, Rect& room, const std::string& text, Rgb color) {
  const float h = ctx.canvas.paragraph_height(room.w, text, Font::small);
  ctx.canvas.paragraph({room.x, room.y, room.w, h + 2}, text, color, Font::small);
  room.take_top(h + 4);
}

void draw_card(Context& ctx, Rect& room, const std::string& text, const store::Store::GateRow& gate,
               bool here) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const float width = room.w - 22;
  const float h = ctx.canvas.paragraph_height(width, text, Font::small);
  const Rect card = room.take_top(h + 6);
  const bool chosen = ctx.row(card, "difference at a boundary").chosen;
  if (here) ctx.canvas.fill(card, mix(c.panel, c.accent, 0.18F));
  ctx.canvas.disc(card.x + 5, card.y + 10, 2.5F, here ? c.accent : c.muted);
  ctx.canvas.paragraph({card.x + 14, card.y + 2, width, h + 2}, text, c.text, Font::small);
  if (chosen) app.jump_to(gate.at_ns);
}

}  // namespace

std::string scheduler_difference_line(const analysis::Scheduling& scheduling, std::uint64_t here) {
  const auto& differences = scheduling.comparison.differences;
  if (!scheduling.missing.empty() || differences.empty()) return "";
  const std::string other = scheduling.other == plan::Compat::shardscope ? "our scheduler" : "DeepSpeed";
  const auto next = SchedulingAt::difference_from(scheduling, here);
  if (next && scheduling.gates.at(static_cast<std::size_t>(differences[*next].visit)).number == here) {
    return "Here " + other + " would decide differently";
  }
  const std::string count = std::to_string(differences.size());
  return "At " + count + " of " + std::to_string(scheduling.gates.size()) + " boundaries " + other +
         " would decide differently";
}

float draw_scheduler_difference(Context& ctx, Rect room, const analysis::Scheduling& scheduling,
                                std::uint64_t here) {
  const float top = room.y;
  const Palette& c = ctx.colors();
  if (!scheduling.missing.empty()) {
    paragraph(ctx, room, scheduling.missing, c.muted);
    return room.y - top;
  }
  const auto& differences = scheduling.comparison.differences;
  if (differences.empty()) {
    paragraph(ctx, room, scheduling.text() + " of micro-step " + std::to_string(scheduling.micro_step) + ".",
              c.text);
    return room.y - top;
  }
  draw_totals(ctx, room, scheduling);
  room.take_top(4);
  paragraph(ctx, room,
            "They differ at " + std::to_string(differences.size()) + " of " +
                std::to_string(scheduling.gates.size()) +
                " boundaries. Computed, not measured: an iteration of " + "both in the order of micro-step " +
                std::to_string(scheduling.micro_step) + ", with this run's limits and a complete trace." +
                (scheduling.caveat.empty() ? "" : " " + scheduling.caveat),
            c.muted);
  // Begin at the current gate; earlier differences follow at the end.
  const std::size_t from = SchedulingAt::difference_from(scheduling, here).value_or(0);
  for (std::size_t i = 0; i < std::min(differences.size(), kCards); ++i) {
    const plan::SchedulerDifference& difference = differences[(from + i) % differences.size()];
    const store::Store::GateRow& gate = scheduling.gates.at(static_cast<std::size_t>(difference.visit));
    draw_card(ctx, room, difference.text, gate, gate.number == here);
  }
  if (differences.size() > kCards) {
    paragraph(ctx, room,
              "and " + std::to_string(differences.size() - kCards) + " more: summary --json has all",
              c.muted);
  }
  return room.y - top;
}

}  // namespace shardscope::gui
