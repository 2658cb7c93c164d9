#include "app/gui/views/scheduler_pane.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/framework.h"
#include "app/gui/model/ds_summary.h"
#include "app/gui/model/stepping.h"
#include "app/gui/views/fetch_counter_table.h"
#include "app/gui/views/rows.h"
#include "app/gui/views/scheduler_difference.h"

namespace shardscope::gui {
namespace {

/// Makes a place read well after "since": "just before ...", "just after ...".
std::string since(const std::string& place) {
  if (place.starts_with("before ") || place.starts_with("after ")) return "just " + place;
  return place.starts_with("at ") ? place.substr(3) : place;
}

void draw_heading(Context& ctx, Rect& text, const std::string& what) {
  const Palette& c = ctx.colors();
  const Rect line = text.take_top(22);
  if (ctx.canvas.text_in(line, what, c.text, Font::strong) && ctx.hovered(line)) ctx.tip(what);
  ctx.canvas.horizontal(line.x, line.bottom() - 1, line.w, c.line);
  text.take_top(4);
}

/// The selected parameter (param_summary()). Returns the height used.
float draw_param_summary(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  float y = 0;
  for (const Field& field :
       param_summary(ctx.app.store(), ctx.app.selection.param, ctx.app.stepper_rank, ctx.app.now_ns())) {
    const Rect line{room.x, room.y + y, std::min(room.w, 460.0F), 18};
    ctx.canvas.text_in({line.x, line.y, 150, line.h}, field.label, c.muted, Font::mono_small);
    const Rect value{line.x + 154, line.y, line.w - 154, line.h};
    if (ctx.canvas.text_in(value, field.value, c.text, Font::mono_small) && ctx.hovered(value))
      ctx.tip(field.value);
    y += 18;
  }
  return y;
}

/// One card per action, with its reason if known. Returns the height used.
float draw_actions(Context& ctx, Rect room, const std::vector<SchedulerAction>& all) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  float y = room.y;
  if (all.empty()) {
    ctx.canvas.text_in({room.x + 14, y, room.w, kTableRow}, "nothing", c.muted, Font::small);
    return kTableRow;
  }
  for (const SchedulerAction& action : all) {
    const float text_width = room.w - 22;
    const float h = ctx.canvas.paragraph_height(text_width, action.text, Font::small);
    const float r =
        action.reason.empty() ? 0 : ctx.canvas.paragraph_height(text_width, action.reason, Font::small);
    const Rect card{room.x, y, room.w, h + r + 4};
    const bool chosen = ctx.row(card, "action").chosen;
    ctx.canvas.disc(card.x + 5, card.y + 9, 2.5F, c.accent);
    ctx.canvas.paragraph({card.x + 14, card.y + 1, text_width, h + 2}, action.text, c.text, Font::small);
    if (r > 0)
      ctx.canvas.paragraph({card.x + 14, card.y + 1 + h, text_width, r + 2}, action.reason, c.muted,
                           Font::small);
    if (chosen) {
      if (action.param != ev::kNoId)
        app.select_param(action.param, app.stepper_rank);
      else if (action.module != ev::kNoId)
        app.select_module(action.module, app.stepper_rank);
    }
    y += card.h;
  }
  return y - room.y;
}

}  // namespace

/// A link to the difference, which is below the actions.
void SchedulerPane::difference_link(Context& ctx, Rect& text, std::uint64_t gate) {
  const Palette& c = ctx.colors();
  const AppState& app = ctx.app;
  const analysis::Scheduling& scheduling = scheduling_.of(app.store(), app.stepper_rank, app.now_ns());
  const std::string difference = scheduler_difference_line(scheduling, gate);
  if (difference.empty()) return;
  const Rect line = text.take_top(22);
  const auto [over, chosen] = ctx.row(line, "difference");
  ctx.canvas.text_in(line, difference + " >", over ? c.text : c.accent, Font::small);
  if (chosen) ScrollArea::scroll_to(difference_top_);
  text.take_top(4);
}

void SchedulerPane::counters_and_difference(Context& ctx, Rect& text, float top, std::uint64_t gate) {
  const AppState& app = ctx.app;
  const auto& counters = counters_.of(app.store(), app.stepper_rank, app.now_ns());
  draw_heading(ctx, text, fetch_counter_heading(counters, app.stepper_rank));
  text.take_top(draw_fetch_counters(ctx, text, counters) + 10);
  difference_top_ = text.y - top;
  const analysis::Scheduling& scheduling = scheduling_.of(app.store(), app.stepper_rank, app.now_ns());
  draw_heading(ctx, text,
               scheduling.other == plan::Compat::shardscope ? "Where our scheduler would decide differently"
                                                            : "Where DeepSpeed would decide differently");
  text.take_top(draw_scheduler_difference(ctx, text, scheduling, gate) + 10);
}

void SchedulerPane::draw(Context& ctx, Rect room) {
  const AppState& app = ctx.app;
  const std::optional<GateRow> here = gate_at(app.store(), app.stepper_rank, app.now_ns());
  if (!here || room.h < 50) return;
  const ActionsAround around = actions_around(app.store(), app.stepper_rank, app.now_ns());
  room.take_top(8);
  ScrollArea area(ctx, "##scheduler", room);
  area.room.take_right(4);
  Rect& text = area.room;
  const float top = text.y;
  if (app.selection.param != ev::kNoId && app.store().has_tables()) {
    draw_heading(ctx, text, param_summary_heading(app.store(), app.selection.param));
    text.take_top(draw_param_summary(ctx, text) + 10);
  }
  const bool fetches = app.store().has_tables() && app.store().tables().stage == 3;
  const bool traces = fetches && analysis::has_fetch_trace(analysis::framework_of(app.store().tables()));
  if (traces) difference_link(ctx, text, here->number);
  draw_heading(ctx, text,
               around.previous_place.empty() ? std::string("Done so far")
                                             : "Done since " + since(around.previous_place));
  text.take_top(draw_actions(ctx, text, around.before) + 10);
  draw_heading(ctx, text,
               around.predicted            ? std::string("Next, if it goes as in the micro-step before")
               : around.next_place.empty() ? std::string("Next")
                                           : "Next, until " + since(around.next_place));
  text.take_top(draw_actions(ctx, text, around.next) + 10);
  if (traces) counters_and_difference(ctx, text, top, here->number);
}

}  // namespace shardscope::gui
