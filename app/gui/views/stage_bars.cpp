#include "app/gui/views/stage_bars.h"

#include <algorithm>
#include <string>

#include "app/gui/model/format.h"
#include "app/gui/model/stage_memory.h"
#include "app/gui/views/plots.h"

namespace shardscope::gui {

void draw_stage_bars(Context& ctx, Rect room) {
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

}  // namespace shardscope::gui
