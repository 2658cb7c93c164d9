// Stepper: where each rank stands, what is here and what is not, what the scheduler did and why, what is
// next.
#include <algorithm>

#include "app/gui/model/fetch_counters_at.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/scheduling_at.h"
#include "app/gui/views/fetch_counter_table.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/run_to.h"
#include "app/gui/views/scheduler_difference.h"

namespace shardscope::gui {
namespace {

constexpr float kRow = 22;

/// "after the forward of x" reads on after "since"; "before ..." needs the article.
std::string since(const std::string& place) {
  return place.starts_with("before ") || place.starts_with("after ") ? "just " + place : place;
}

class StepperView final : public View {
 public:
  std::string_view name() const override { return "stepper"; }
  std::string_view title() const override { return "Stepper"; }
  void draw(Context& ctx, Rect room) override;

 private:
  void buttons(Context& ctx, Rect& room);
  void positions(Context& ctx, Rect& room);
  void status(Context& ctx, Rect& room);
  void list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
            std::int64_t elems, int which);
  float actions(Context& ctx, Rect room, const std::vector<SchedulerAction>& list);

  float rank_scroll_ = 0, text_scroll_ = 0, text_height_ = 0;
  float difference_top_ = 0;  ///< of the scheduler's difference within the scrolled text
  bool fill_ = false;         ///< the lists have a column of their own
  float list_scroll_[3]{};
  int list_owner_[3]{};
  SchedulingAt scheduling_;
  FetchCountersAt counters_;
};

void StepperView::buttons(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const bool live = app.run->live() && !app.cursor_ns;
  const collector::ControlState control = app.run->control();
  const bool can_step = !app.run->live() || app.cursor_ns || control.paused;
  const Palette& c = ctx.colors();
  Rect line = room.take_top(24);
  // Both rows of buttons begin under each other, and so does what has to go on in a row of its own.
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
             "Let the run go on (space)"))
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
          next("< module", true, Context::Look::plain, "Back to the module before"))
        app.step(unit, Direction::backward);
      if (unit == StepUnit::step && next("< step", true, Context::Look::plain, "Back to the step before"))
        app.step(unit, Direction::backward);
    }
    const std::string label = live ? word(unit) : std::string(word(unit)) + " >";
    if (next(label, can_step, Context::Look::plain, std::string("On to the next ") + word(unit)))
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
  ctx.section(room, "Where each rank stands");
  Rect area =
      room.take_top(std::min(kRow * static_cast<float>(ranks.size()), std::max(kRow, room.h * 0.25F)));
  ctx.scroll(&rank_scroll_, area, kRow * static_cast<float>(ranks.size()), rank_scroll_);
  const Clip clip(ctx.canvas, area);
  float y = area.y - rank_scroll_;
  for (const store::RankRow& rank : ranks) {
    Rect row{area.x, y, area.w - 8, kRow};
    y += kRow;
    if (row.bottom() < area.y || row.y > area.bottom()) continue;
    const Rect whole = row;
    const bool over = ctx.hovered(whole);
    const bool chosen = rank.rank == app.stepper_rank;
    if (chosen)
      ctx.canvas.fill(whole, mix(c.panel, c.accent, 0.18F));
    else if (over)
      ctx.canvas.fill(whole, c.raised);
    const GatePosition at = gate_position(app.store(), rank.rank, app.now_ns());
    // A square holds, a triangle runs, a ring has finished.
    const Rect mark = row.take_left(20);
    const float my = mark.y + kRow / 2;
    if (at.holding)
      ctx.canvas.fill({mark.x + 5, my - 4, 8, 8}, c.accent);
    else if (rank.finished && !app.cursor_ns)
      ctx.canvas.outline({mark.x + 5, my - 4, 8, 8}, c.muted, 1, 1, 4);
    else
      ctx.canvas.triangle(mark.x + 6, my - 4, mark.x + 6, my + 4, mark.x + 13, my, c.of(Meaning::gather));
    ctx.canvas.text_in(row.take_left(52), "rank " + std::to_string(rank.rank), c.text, Font::small);
    ctx.canvas.text_in(row.take_right(72), at.known ? "gate " + std::to_string(at.gate_number) : "", c.muted,
                       Font::mono_small, Align::right);
    row.take_right(8);
    const std::string place = at.known ? at.place : "no gate passed yet";
    if (ctx.canvas.text_in(row, place, c.text, Font::small) && over) ctx.tip(place);
    if (over && ctx.pointer.pressed[0]) {
      app.stepper_rank = rank.rank;
      app.memory_rank = rank.rank;
    }
  }
}

void StepperView::list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
                       std::int64_t elems, int which) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  Rect head = room.take_top(18);
  const std::string sum =
      std::to_string(params.size()) + (elems > 0 ? ", " + count(static_cast<double>(elems)).text() : "");
  ctx.canvas.text_in(head.take_right(std::min(head.w, ctx.canvas.width(sum, Font::mono_small) + 1)), sum,
                     c.muted, Font::mono_small, Align::right);
  ctx.canvas.text_in(head, title, c.text, Font::small);
  constexpr float kLine = 18;
  float& offset = list_scroll_[which];
  ctx.scroll(&list_owner_[which], room, kLine * static_cast<float>(params.size()), offset);
  const Clip clip(ctx.canvas, room);
  const auto first = static_cast<std::size_t>(offset / kLine);
  for (std::size_t i = first; i < params.size(); ++i) {
    const Rect row{room.x, room.y + static_cast<float>(i) * kLine - offset, room.w - 8, kLine};
    if (row.y > room.bottom()) break;
    const bool over = ctx.hovered(row) && room.contains(ctx.pointer.x, ctx.pointer.y);
    if (app.selected(params[i]))
      ctx.canvas.fill(row, mix(c.panel, c.accent, 0.25F));
    else if (over)
      ctx.canvas.fill(row, c.raised);
    const std::string name = param_name(app.store(), params[i]);
    ctx.canvas.text_in(row.inset(4, 0), tail_path(name), c.text, Font::small);
    if (which == 0 && app.store().tables().params[params[i]].persistent) {
      ctx.canvas.disc(row.right() - 14, row.y + row.h / 2, 2.5F, c.of(Meaning::gather));
    }
    if (over) ctx.tip(describe_param(app, params[i], app.stepper_rank, app.now_ns()));
    if (over && ctx.pointer.pressed[0]) app.select_param(params[i], app.stepper_rank);
  }
  if (params.empty()) ctx.canvas.text_in(room.take_top(kLine).inset(4, 0), "none", c.muted, Font::small);
}

void StepperView::status(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.section(room, "Parameters on rank " + std::to_string(app.stepper_rank));
  if (!app.store().has_tables()) {
    ctx.canvas.text_in(room.take_top(kRow), "The rank's tables have not arrived.", c.muted, Font::small);
    return;
  }
  if (app.store().tables().stage != 3) {
    ctx.canvas.text_in(room.take_top(kRow),
                       "Stage " + std::to_string(app.store().tables().stage) +
                           " keeps every parameter on every rank: nothing is fetched or released.",
                       c.muted, Font::small);
    return;
  }
  const StatusLists lists = status_lists(app.store(), app.stepper_rank, app.now_ns());
  std::vector<std::uint32_t> here = lists.available;
  here.insert(here.end(), lists.persistent.begin(), lists.persistent.end());
  const auto total = static_cast<float>(std::max<std::int64_t>(1, app.store().tables().elems));
  Rect bar = room.take_top(14);
  const float available = bar.w * static_cast<float>(lists.available_elems + lists.persistent_elems) / total;
  const float flying = bar.w * static_cast<float>(lists.in_flight_elems) / total;
  ctx.canvas.outline(bar, c.line);
  ctx.canvas.fill({bar.x, bar.y, available, bar.h}, c.of(Meaning::gather));
  const Rect flight{bar.x + available, bar.y, flying, bar.h};
  ctx.canvas.fill(flight, c.of(Meaning::gather), 0.25F);
  ctx.canvas.hatch(flight, c.of(Meaning::gather), 1, 6);
  room.take_top(6);
  Rect columns = room.take_top(fill_ ? room.h : std::clamp(room.h * 0.36F, 60.0F, 320.0F));
  const float w = (columns.w - 24) / 3;
  list(ctx, columns.take_left(w), "Available", here, lists.available_elems + lists.persistent_elems, 0);
  columns.take_left(12);
  list(ctx, columns.take_left(w), "In flight", lists.in_flight, lists.in_flight_elems, 1);
  columns.take_left(12);
  list(ctx, columns, "Not available", lists.not_available, lists.not_available_elems, 2);
}

float StepperView::actions(Context& ctx, Rect room, const std::vector<SchedulerAction>& all) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  float y = room.y;
  if (all.empty()) {
    ctx.canvas.text_in({room.x + 14, y, room.w, kRow}, "nothing", c.muted, Font::small);
    return kRow;
  }
  for (const SchedulerAction& action : all) {
    const float text_width = room.w - 22;
    const float h = ctx.canvas.paragraph_height(text_width, action.text, Font::small);
    const float r =
        action.reason.empty() ? 0 : ctx.canvas.paragraph_height(text_width, action.reason, Font::small);
    const Rect card{room.x, y, room.w, h + r + 4};
    const bool over = ctx.hovered(card);
    if (over) ctx.canvas.fill(card, c.raised, 0.7F);
    ctx.canvas.disc(card.x + 5, card.y + 9, 2.5F, c.accent);
    ctx.canvas.paragraph({card.x + 14, card.y + 1, text_width, h + 2}, action.text, c.text, Font::small);
    if (r > 0)
      ctx.canvas.paragraph({card.x + 14, card.y + 1 + h, text_width, r + 2}, action.reason, c.muted,
                           Font::small);
    if (over && ctx.pointer.pressed[0]) {
      if (action.param != ev::kNoId)
        app.select_param(action.param, app.stepper_rank);
      else if (action.module != ev::kNoId)
        app.select_module(action.module, app.stepper_rank);
    }
    y += card.h;
  }
  return y - room.y;
}

void StepperView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  room = {room.x + 12, room.y, room.w - 24, room.h - 8};
  buttons(ctx, room);
  if (app.store().ranks().empty()) {
    ctx.empty(room, "No rank yet", "Ranks appear as they connect.");
    return;
  }
  positions(ctx, room);
  Rect right;
  fill_ = room.w > 900;
  if (fill_) {
    right = room.take_right(room.w * 0.48F);
    room.take_right(24);
    status(ctx, room);
  } else {
    status(ctx, room);
    right = room;
  }
  const std::optional<GateRow> here = gate_at(app.store(), app.stepper_rank, app.now_ns());
  if (!here || right.h < 50) return;
  const ActionsAround around = actions_around(app.store(), app.stepper_rank, app.now_ns());
  right.take_top(8);
  ctx.scroll(&text_scroll_, right, text_height_, text_scroll_);
  const Clip clip(ctx.canvas, right);
  Rect text{right.x, right.y - text_scroll_, right.w - 8, 1e6F};
  const float top = text.y;
  const auto heading = [&](const std::string& what) {
    const Rect line = text.take_top(22);
    if (ctx.canvas.text_in(line, what, c.text, Font::strong) && ctx.hovered(line)) ctx.tip(what);
    ctx.canvas.horizontal(line.x, line.bottom() - 1, line.w, c.line);
    text.take_top(4);
  };
  const bool fetches = app.store().has_tables() && app.store().tables().stage == 3;
  const std::uint64_t gate = here->number;
  if (fetches) {
    // The difference itself is below what was done; this line leads there.
    const analysis::Scheduling& scheduling = scheduling_.of(app.store(), app.stepper_rank, app.now_ns());
    if (const std::string said = scheduler_difference_line(scheduling, gate); !said.empty()) {
      const Rect line = text.take_top(22);
      const bool over = ctx.hovered(line);
      ctx.canvas.text_in(line, said + " >", over ? c.text : c.accent, Font::small);
      if (over && ctx.pointer.pressed[0]) text_scroll_ = difference_top_;
      text.take_top(4);
    }
  }
  heading(around.previous_place.empty() ? std::string("Done so far")
                                        : "Done since " + since(around.previous_place));
  text.take_top(actions(ctx, text, around.before) + 10);
  heading(around.predicted            ? std::string("Next, if it goes as in the micro-step before")
          : around.next_place.empty() ? std::string("Next")
                                      : "Next, until " + since(around.next_place));
  text.take_top(actions(ctx, text, around.next) + 10);
  if (fetches) {
    const auto& counters = counters_.of(app.store(), app.stepper_rank, app.now_ns());
    heading(fetch_counter_heading(counters, app.stepper_rank));
    text.take_top(draw_fetch_counters(ctx, text, counters) + 10);
    difference_top_ = text.y - top;
    const analysis::Scheduling& scheduling = scheduling_.of(app.store(), app.stepper_rank, app.now_ns());
    heading(scheduling.other == plan::Compat::shardscope ? "Where our scheduler would decide otherwise"
                                                         : "Where DeepSpeed would decide otherwise");
    text.take_top(draw_scheduler_difference(ctx, text, scheduling, gate) + 10);
  }
  text_height_ = text.y - top;
}

}  // namespace

std::unique_ptr<View> make_stepper_view() { return std::make_unique<StepperView>(); }

}  // namespace shardscope::gui
