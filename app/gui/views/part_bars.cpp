#include "app/gui/views/part_bars.h"

#include <algorithm>

#include "app/gui/model/format.h"

namespace shardscope::gui {

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
