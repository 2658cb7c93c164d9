// Stepper: moves by event, module or step, and shows each rank's gate, its available parameters, the
// scheduler's actions with reasons, and what is next.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/stepping.h"
#include "app/gui/views/breakpoint_pane.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/param_lists.h"
#include "app/gui/views/run_to.h"
#include "app/gui/views/scheduler_pane.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {
namespace {

class StepperView final : public View {
 public:
  std::string_view name() const override { return "stepper"; }
  std::string_view title() const override { return "Stepper"; }
  void header(Context& ctx, Rect& room) override;
  void draw(Context& ctx, Rect room) override;

 private:
  static void buttons(Context& ctx, Rect& room);
  void positions(Context& ctx, Rect& room);

  TableState ranks_state_;
  BreakpointPane breakpoints_;
  bool breakpoints_first_ = false;  ///< in a low panel: breakpoints instead of the lists
  bool low_ = false;                ///< not enough height for both
  SchedulerPane scheduler_;
};

/// A button that switches a low panel between breakpoints and lists.
void StepperView::header(Context& ctx, Rect& room) {
  if (!low_) return;
  const std::size_t count = ctx.app.breaks.list().size();
  const std::string label = count == 0 ? "Breakpoints" : "Breakpoints (" + std::to_string(count) + ")";
  if (ctx.button_right(room, label, true, breakpoints_first_ ? Context::Look::chosen : Context::Look::plain,
                       breakpoints_first_ ? "Back to the parameters and what the scheduler does"
                                          : "Shows the list of breakpoints instead of the parameters")) {
    breakpoints_first_ = !breakpoints_first_;
    ctx.moving = true;  // redraw with the new label
  }
}

void StepperView::buttons(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const bool live = app.run->live() && !app.cursor_ns;
  const collector::ControlState control = app.run->control();
  const bool can_step = !app.run->live() || app.cursor_ns || control.paused;
  const Palette& c = ctx.colors();
  Rect line = room.take_top(24);
  // Align both rows of buttons and their continuation rows.
  const float indent =
      std::max(ctx.canvas.width("step by", Font::small), ctx.canvas.width("run to", Font::small)) + 8;
  const auto next = [&](std::string_view label, bool enabled, Context::Look look, std::string_view tip) {
    const float w = ctx.button_width(label);
    if (line.w < w) {
      room.take_top(4);
      line = room.take_top(24);
      line.take_left(indent);
      if (line.w < w) return false;
    }
    const Rect place = line.take_left(w);
    line.take_left(4);
    return ctx.button(place, label, enabled, look, tip);
  };
  if (app.run->live()) {
    if (next(control.pausing ? "Pausing" : "Pause", !control.paused && !control.pausing, Context::Look::plain,
             "Hold every rank at the next gate (space)")) {
      app.cursor_ns.reset();
      app.pause();
    }
    if (next("Resume", control.paused, control.paused ? Context::Look::primary : Context::Look::plain,
             "Resume the run (space)"))
      app.resume();
    line.take_left(8);
  }
  ctx.canvas.text_in(line.take_left(indent), "step by", c.muted, Font::small);
  for (const StepUnit unit : {StepUnit::event, StepUnit::module, StepUnit::micro_step, StepUnit::step}) {
    if (!live) {
      const std::string back = std::string("< ") + word(unit);
      if (unit == StepUnit::event && next("<", true, Context::Look::plain, "Back by one event (left arrow)"))
        app.step(unit, Direction::backward);
      if (unit == StepUnit::module &&
          next("< module", true, Context::Look::plain, "Back to the previous module"))
        app.step(unit, Direction::backward);
      if (unit == StepUnit::step && next("< step", true, Context::Look::plain, "Back to the previous step"))
        app.step(unit, Direction::backward);
    }
    const std::string label = live ? word(unit) : std::string(word(unit)) + " >";
    if (next(label, can_step, Context::Look::plain, std::string("Forward to the next ") + word(unit)))
      app.step(unit, Direction::forward);
  }
  room.take_top(4);
  line = room.take_top(24);
  ctx.canvas.text_in(line.take_left(indent), "run to", c.muted, Font::small);
  for (const auto& [label, kind] :
       {std::pair{"module", RunToKind::module}, std::pair{"parameter", RunToKind::param},
        std::pair{"step", RunToKind::step}}) {
    const Rect anchor{line.x, line.y, 10, line.h};
    if (next(label, can_step && app.store().has_tables(), Context::Look::plain,
             std::string("Choose the ") + label + " to stop at")) {
      pick_run_to(ctx, anchor, kind);
    }
  }
  if (app.run->live() && control.paused) {
    ctx.canvas.text_in(line.inset(8, 0), "lease " + decimal(control.lease_left_s, 0) + " s", c.muted,
                       Font::mono_small, Align::right);
  } else if (app.cursor_ns) {
    ctx.canvas.text_in(line.inset(8, 0), "looking at " + timestamp(*app.cursor_ns, 10'000), c.accent,
                       Font::mono_small, Align::right);
  }
}

void StepperView::positions(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const auto ranks = app.store().ranks();
  ctx.section(room, "Where each rank is");
  Table table;
  table.columns = {{"rank", 0.25F, true}, {"position", 1.6F}, {"gate", 0.3F, true}};
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank == app.stepper_rank) chosen = i;
    table.add({number_cell(ranks[i].rank, std::to_string(ranks[i].rank)), {}, {}});
  }
  const Rect area =
      room.take_top(std::min(table_height(table, kTableRow), std::max(3 * kTableRow, room.h * 0.25F)));
  TableOptions options;
  options.chosen = chosen;
  options.row_height = kTableRow;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    if (column == 0) return false;
    // For visible rows only: there may be a thousand ranks.
    const store::RankRow& rank = ranks[row];
    const GatePosition at = gate_position(app.store(), rank.rank, app.now_ns());
    if (column == 2) {
      ctx.canvas.text_in(cell, at.known ? std::to_string(at.gate_number) : "", c.muted, Font::mono_small,
                         Align::right);
      return true;
    }
    // Square: held at a gate; triangle: running; ring: finished.
    const float my = cell.y + cell.h / 2;
    if (at.holding)
      ctx.canvas.fill({cell.x, my - 4, 8, 8}, c.accent);
    else if (rank.finished && !app.cursor_ns)
      ctx.canvas.outline({cell.x, my - 4, 8, 8}, c.muted, 1, 1, 4);
    else
      ctx.canvas.triangle(cell.x + 1, my - 4, cell.x + 1, my + 4, cell.x + 8, my, c.of(Meaning::gather));
    const std::string place = at.known ? at.place : no_gate_text(app.store(), rank.rank, app.now_ns());
    const Rect text{cell.x + 16, cell.y, cell.w - 16, cell.h};
    if (ctx.canvas.text_in(text, place, c.text, Font::small) && ctx.hovered(text)) ctx.tip(place);
    return true;
  };
  const TableHit hit = draw_table(ctx, "##positions", area, table, ranks_state_, options);
  if (hit.clicked) app.stepper_rank = app.memory_rank = ranks[*hit.clicked].rank;
}

void StepperView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  buttons(ctx, room);
  if (app.store().ranks().empty()) {
    ctx.empty(room, "No rank yet", "Ranks appear as they connect.");
    return;
  }
  breakpoints_.play(ctx, room);
  positions(ctx, room);
  low_ = room.h <= 260;
  if (!low_ || breakpoints_first_) breakpoints_.draw(ctx, room, low_ ? 1.0F : 0.22F);
  if (low_ && breakpoints_first_) return;
  // The scheduler's text is beside the lists in a wide panel, else below them.
  const bool beside = room.w > 900;
  const Rect text = beside ? room.take_right(room.w * 0.48F) : Rect{};
  if (beside) room.take_right(24);
  draw_param_lists(ctx, room, beside ? ParamRoom::all : ParamRoom::share);
  scheduler_.draw(ctx, beside ? text : room);
}

}  // namespace

std::unique_ptr<View> make_stepper_view() { return std::make_unique<StepperView>(); }

}  // namespace shardscope::gui
