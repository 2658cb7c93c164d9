#include "app/gui/views/held_pane.h"

#include <string>

#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"

namespace shardscope::gui {

void HeldPane::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  room.take_top(6);
  const auto steps = app.store().steps();
  const auto at = measured_step_of(steps, app.now_ns());
  if (!at) {
    ctx.empty(room, "No step has ended", "What is held after its last use is counted step by step.");
    return;
  }
  const store::StepRow& step = steps[*at];
  if (run_ != app.run->number() || rank_ != app.memory_rank || step_ != step.step) {
    run_ = app.run->number();
    rank_ = app.memory_rank;
    step_ = step.step;
    held_ = held_long(app.store(), rank_, step);
    table_ = held_table(app.store(), held_);
  }
  const std::string where = "step " + std::to_string(step_) + ", rank " + std::to_string(rank_);
  if (held_.params.empty()) {
    ctx.empty(room, held_.missing.empty() ? "Nothing was held" : "Not known",
              held_.missing.empty()
                  ? "Each gathered parameter was released at the end of its last use in " + where + "."
                  : held_.missing);
    return;
  }
  // The figure comes first, as a narrow panel truncates the line.
  const std::string title = bytes(static_cast<std::int64_t>(held_.mean_bytes())).text() +
                            " on average: gathered parameters held after their last use in " + where;
  const Rect line = room.take_top(24);
  if (ctx.canvas.text_in(line, title, c.muted, Font::small) && ctx.hovered(line)) ctx.tip(title);
  const TableHit hit = draw_table(ctx, "##held", room, table_, state_);
  if (!hit.clicked) return;
  app.select_param(held_.params[*hit.clicked].param, rank_);
  app.jump_to(held_.params[*hit.clicked].longest_at_ns);
}

}  // namespace shardscope::gui
