// Stepper: where each rank stands, what is here and what is not, what the scheduler did and why, what is
// next.
#include <algorithm>
#include <array>
#include <cmath>

#include "app/gui/model/breakpoints.h"
#include "app/gui/model/ds_summary.h"
#include "app/gui/model/fetch_counters_at.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/scheduling_at.h"
#include "app/gui/views/fetch_counter_table.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/run_to.h"
#include "app/gui/views/scheduler_difference.h"
#include "app/gui/views/table_view.h"

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
  void play(Context& ctx, Rect& room);
  void to_next_hit(AppState& app);
  void breakpoints(Context& ctx, Rect& room);
  void add_line(Context& ctx);
  void watch_live(AppState& app);
  static float summary(Context& ctx, Rect room);
  void status(Context& ctx, Rect& room);
  void list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
            std::int64_t elems, int which);
  float actions(Context& ctx, Rect room, const std::vector<SchedulerAction>& list);

  TableState ranks_state_;
  Playback playback_;
  double last_seconds_ = 0;  ///< of the frame before
  std::vector<Breakpoint> breakpoints_;
  Breakpoint next_;                 ///< that the line adds
  std::optional<std::size_t> hit_;  ///< breakpoint at which it stopped
  bool none_left_ = false;
  std::int64_t watched_ns_ = 0;  ///< live: conditions have been looked at up to there
  float text_scroll_ = 0, text_height_ = 0;
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
  Table table;
  table.columns = {{"rank", 0.25F, true}, {"stands", 1.6F}, {"gate", 0.3F, true}};
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank == app.stepper_rank) chosen = i;
    table.add({number_cell(ranks[i].rank, std::to_string(ranks[i].rank)), {}, {}});
  }
  const Rect area = room.take_top(std::min(table_height(table, kRow), std::max(3 * kRow, room.h * 0.25F)));
  TableOptions options;
  options.chosen = chosen;
  options.row_height = kRow;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    if (column == 0) return false;
    // Of the rows that are seen only: there may be a thousand ranks.
    const store::RankRow& rank = ranks[row];
    const GatePosition at = gate_position(app.store(), rank.rank, app.now_ns());
    if (column == 2) {
      ctx.canvas.text_in(cell, at.known ? std::to_string(at.gate_number) : "", c.muted, Font::mono_small,
                         Align::right);
      return true;
    }
    // A square holds, a triangle runs, a ring has finished.
    const float my = cell.y + cell.h / 2;
    if (at.holding)
      ctx.canvas.fill({cell.x, my - 4, 8, 8}, c.accent);
    else if (rank.finished && !app.cursor_ns)
      ctx.canvas.outline({cell.x, my - 4, 8, 8}, c.muted, 1, 1, 4);
    else
      ctx.canvas.triangle(cell.x + 1, my - 4, cell.x + 1, my + 4, cell.x + 8, my, c.of(Meaning::gather));
    const std::string place = at.known ? at.place : "no gate passed yet";
    const Rect text{cell.x + 16, cell.y, cell.w - 16, cell.h};
    if (ctx.canvas.text_in(text, place, c.text, Font::small) && ctx.hovered(text)) ctx.tip(place);
    return true;
  };
  const TableHit hit = draw_table(ctx, "##positions", area, table, ranks_state_, options);
  if (hit.clicked) app.stepper_rank = app.memory_rank = ranks[*hit.clicked].rank;
}

/// Plays a recording: the cursor moves on, at breakpoints it stops.
void StepperView::play(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  if (app.run->live()) return;
  const Palette& c = ctx.colors();
  room.take_top(4);
  Rect line = room.take_top(24);
  const float w = ctx.button_width("Pause");
  if (ctx.button(line.take_left(w), playback_.playing ? "Pause" : "Play", true,
                 playback_.playing ? Context::Look::primary : Context::Look::plain,
                 "Plays the recording from the cursor; it stops at the breakpoints below")) {
    playback_.playing = !playback_.playing;
    if (playback_.playing && (!app.cursor_ns || *app.cursor_ns >= app.store().end_ns()))
      app.jump_to(app.time.range().begin_ns > 0 && app.cursor_ns
                      ? 0
                      : std::max<std::int64_t>(0, app.time.range().begin_ns));
  }
  line.take_left(8);
  ctx.canvas.text_in(line.take_left(std::min(line.w, ctx.canvas.width("speed", Font::small) + 6)), "speed",
                     c.muted, Font::small);
  if (line.w > 120) {
    const Rect slider = line.take_left(std::min(200.0F, line.w * 0.5F));
    ImGui::PushFont(ctx.canvas.fonts().of(Font::mono_small), line_height(Font::mono_small));
    ImGui::SetCursorScreenPos({slider.x, slider.y + 1});
    ImGui::SetNextItemWidth(slider.w);
    float ms_per_s = static_cast<float>(playback_.speed * 1e3);
    if (ImGui::SliderFloat("##speed", &ms_per_s, 0.01F, 10'000, "%.3g ms per second",
                           ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
      playback_.speed = static_cast<double>(ms_per_s) * 1e-3;
    ImGui::PopFont();
    line.take_left(8);
  }
  if (!breakpoints_.empty() && line.w > ctx.button_width("To the next breakpoint") &&
      ctx.button(line.take_left(ctx.button_width("To the next breakpoint")), "To the next breakpoint")) {
    to_next_hit(app);
  }
  const double passed = last_seconds_ > 0 ? std::min(0.25, ctx.seconds - last_seconds_) : 0;
  last_seconds_ = ctx.seconds;
  if (!playback_.playing) return;
  ctx.moving = true;
  const std::int64_t from = app.now_ns();
  const std::int64_t to = playback_.advance(from, passed, app.store().end_ns());
  const auto hit = next_hit(*app.run, app.stepper_rank, breakpoints_, from, to);
  if (hit) {
    playback_.playing = false;
    hit_ = hit->which;
  }
  app.cursor_ns = hit ? hit->at_ns : to;
  if (!app.time.range().contains(*app.cursor_ns))
    app.time.set({*app.cursor_ns, *app.cursor_ns + app.time.range().length()}, app.store().end_ns());
}

void StepperView::to_next_hit(AppState& app) {
  const auto hit = next_hit(*app.run, app.stepper_rank, breakpoints_, app.now_ns(), app.store().end_ns());
  none_left_ = !hit;
  if (!hit) return;
  hit_ = hit->which;
  app.jump_to(hit->at_ns);
}

/// The list, and a line that adds to it.
void StepperView::breakpoints(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  ctx.section(room,
              none_left_ && !breakpoints_.empty() ? "Breakpoints: none is hit from here on" : "Breakpoints");
  const float rows = static_cast<float>(breakpoints_.size()) + 1;
  const Rect area = room.take_top(std::min(26 * rows, std::max(52.0F, room.h * 0.22F)));
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {6, 3});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6, 3});
  ImGui::SetCursorScreenPos({area.x, area.y});
  if (ImGui::BeginChild("##breakpoints", {area.w, area.h})) {
    std::optional<std::size_t> removed;
    for (std::size_t i = 0; i < breakpoints_.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      ImGui::Checkbox("##enabled", &breakpoints_[i].enabled);
      ImGui::SameLine();
      const std::string text = text_of(app.store(), breakpoints_[i]) + (hit_ == i ? "  (stopped here)" : "");
      ImGui::TextUnformatted(text.c_str());
      ImGui::SameLine(std::max(0.0F, area.w - 34));
      if (ImGui::SmallButton("x")) removed = i;
      ImGui::PopID();
    }
    if (removed) {
      breakpoints_.erase(breakpoints_.begin() + static_cast<std::ptrdiff_t>(*removed));
      hit_.reset();
    }
    add_line(ctx);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

void StepperView::add_line(Context& ctx) {
  AppState& app = ctx.app;
  const store::Store& store = app.store();
  ImGui::SetNextItemWidth(150);
  if (ImGui::BeginCombo("##kind", word(next_.kind))) {
    for (int i = 0; i < kBreakKinds; ++i) {
      const auto kind = static_cast<BreakKind>(i);
      if (ImGui::Selectable(word(kind), kind == next_.kind)) {
        next_ = {kind, ev::kNoId, kind == BreakKind::live_elements ? 1e6 : 1.0, true};
        if (kind == BreakKind::step) next_.id = 0;
      }
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  bool complete = true;
  const auto pick = [&](const auto& all, auto&& name) {
    complete = next_.id != ev::kNoId;
    ImGui::SetNextItemWidth(200);
    const std::string shown = complete ? name(next_.id) : std::string("which?");
    if (!ImGui::BeginCombo("##which", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
    for (const auto& one : all) {
      ImGui::PushID(static_cast<int>(one.id));
      if (ImGui::Selectable(name(one.id).c_str(), one.id == next_.id)) next_.id = one.id;
      ImGui::PopID();
    }
    ImGui::EndCombo();
  };
  if (next_.kind == BreakKind::module && store.has_tables()) {
    pick(store.tables().modules, [&](std::uint32_t id) { return module_name(store, id); });
    ImGui::SameLine();
  } else if (next_.kind == BreakKind::param && store.has_tables()) {
    pick(store.tables().params, [&](std::uint32_t id) { return param_name(store, id); });
    ImGui::SameLine();
  } else if (next_.kind == BreakKind::step) {
    int step = static_cast<int>(next_.id);
    ImGui::SetNextItemWidth(100);
    if (ImGui::InputInt("##step", &step)) next_.id = static_cast<std::uint32_t>(std::max(0, step));
    ImGui::SameLine();
  } else if (*threshold_unit(next_.kind) != 0) {
    ImGui::SetNextItemWidth(90);
    ImGui::InputDouble("##threshold", &next_.threshold, 0, 0, "%.6g");
    ImGui::SameLine();
    ImGui::TextDisabled("%s", threshold_unit(next_.kind));
    ImGui::SameLine();
  }
  ImGui::BeginDisabled(!complete);
  if (ImGui::Button("Add") && std::ranges::find(breakpoints_, next_) == breakpoints_.end())
    breakpoints_.push_back(next_);
  ImGui::EndDisabled();
}

/// Live: conditions are looked at as far as events have come; the run holds at its next gate.
void StepperView::watch_live(AppState& app) {
  if (!app.run->live()) return;
  const std::int64_t end = app.store().end_ns();
  if (watched_ns_ > 0 && end > watched_ns_ && !app.paused()) {
    if (const auto hit = next_hit(*app.run, app.stepper_rank, breakpoints_, watched_ns_, end)) {
      hit_ = hit->which;
      app.pause();
    }
  }
  watched_ns_ = end;
}

/// As DeepSpeed's ds_summary() prints it, of the parameter that is selected.
float StepperView::summary(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  float y = 0;
  for (const Field& field :
       ds_summary(ctx.app.store(), ctx.app.selection.param, ctx.app.stepper_rank, ctx.app.now_ns())) {
    const Rect line{room.x, room.y + y, std::min(room.w, 460.0F), 18};
    ctx.canvas.text_in({line.x, line.y, 150, line.h}, field.label, c.muted, Font::mono_small);
    const Rect value{line.x + 154, line.y, line.w - 154, line.h};
    if (ctx.canvas.text_in(value, field.value, c.text, Font::mono_small) && ctx.hovered(value))
      ctx.tip(field.value);
    y += 18;
  }
  return y;
}

void StepperView::list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
                       std::int64_t elems, int which) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  Rect head = room.take_top(18);
  // The number of parameters and of their elements are not one number with a comma.
  std::string sum = std::to_string(params.size()) + (params.size() == 1 ? " parameter" : " parameters");
  const std::string elements = " \u00b7 " + count(static_cast<double>(elems)).text() + " elements";
  if (elems > 0 &&
      ctx.canvas.width(title, Font::small) + ctx.canvas.width(sum + elements, Font::mono_small) + 8 < head.w)
    sum += elements;
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
  if (!lists.known) {
    ctx.canvas.text_in(room.take_top(kRow), not_kept_text(), c.muted, Font::small);
    return;
  }
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
  play(ctx, room);
  watch_live(app);
  positions(ctx, room);
  if (room.h > 260) breakpoints(ctx, room);
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
  if (app.selection.param != ev::kNoId && app.store().has_tables()) {
    heading("ds_summary of " + param_name(app.store(), app.selection.param));
    text.take_top(summary(ctx, text) + 10);
  }
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
