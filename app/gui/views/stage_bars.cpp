#include "app/gui/views/stage_bars.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/stage_memory.h"
#include "app/gui/views/part_bars.h"

namespace shardscope::gui {
namespace {

/// Widths of the stage's name and of a figure, in points.
constexpr float kStage = 150, kBytes = 100;

constexpr std::array<std::pair<const char*, Meaning>, 3> kParts{{{"parameters", Meaning::compute},
                                                                 {"gradients", Meaning::reduce},
                                                                 {"optimizer states", Meaning::optimizer}}};

}  // namespace

void draw_stage_bars(Context& ctx, Rect room) {
  const AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.section(room, "Model states of one rank, stages 0 to 3");
  const auto rows = stage_memory(app.store(), app.run->summary(), app.other ? &app.other->store() : nullptr,
                                 app.other ? &app.other->summary() : nullptr);
  Rect legend = room.take_top(20);
  for (const char* head : {"measured peak", "predicted"})
    ctx.canvas.text_in(legend.take_right(kBytes), head, c.muted, Font::small, Align::right);
  for (const auto& [name, color] : kParts) {
    const float width = ctx.canvas.width(name, Font::small) + 16;
    if (legend.w < width + 16) break;
    const Rect mark = legend.take_left(16);
    ctx.canvas.fill({mark.x, mark.y + 5, 10, 10}, c.of(color), 1, 2);
    ctx.canvas.text_in(legend.take_left(width), name, c.muted, Font::small);
  }
  if (legend.w > 120) {
    ctx.canvas.vertical(legend.x + 4, legend.y + 3, 14, c.text, 1, 2);
    ctx.canvas.text_in({legend.x + 12, legend.y, legend.w - 12, legend.h}, "measured peak", c.muted,
                       Font::small);
  }
  double most = 1;
  for (const StageMemory& row : rows)
    most = std::max({most, row.total(), static_cast<double>(row.measured.value_or(0))});
  const auto text = [](double value) { return bytes(static_cast<std::int64_t>(value)).text(); };
  for (const StageMemory& row : rows) {
    if (room.h < 26) return;
    Rect line = room.take_top(28);
    const bool own = app.store().has_tables() && row.stage == app.store().tables().stage;
    ctx.canvas.text_in(line.take_left(kStage), "stage " + std::to_string(row.stage) + ": " + row.expression,
                       own ? c.text : c.muted, Font::small);
    ctx.canvas.text_in(line.take_right(kBytes),
                       row.measured ? text(static_cast<double>(*row.measured)) : "not measured",
                       row.measured ? c.text : c.muted, Font::mono_small, Align::right);
    ctx.canvas.text_in(line.take_right(kBytes), text(row.total()), c.text, Font::mono_small, Align::right);
    line.take_right(10);
    const Rect bar = line.inset(0, 6);
    stacked_bar(ctx, bar,
                {{kParts[0].first, row.params, c.of(kParts[0].second), false},
                 {kParts[1].first, row.gradients, c.of(kParts[1].second), false},
                 {kParts[2].first, row.optimizer, c.of(kParts[2].second), false}},
                most, text);
    if (row.measured) {
      const float x = bar.x + static_cast<float>(static_cast<double>(*row.measured) / most) * bar.w;
      ctx.canvas.vertical(x, bar.y - 3, bar.h + 6, c.text, 1, 2);
    }
  }
}

}  // namespace shardscope::gui
