#include "app/gui/views/commands.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "app/gui/model/element_zoom.h"
#include "app/gui/model/micro_steps.h"
#include "app/gui/model/own_order.h"
#include "app/gui/model/range_grip.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/span_menu.h"
#include "app/gui/views/timeline_menu.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

using C = Context;

bool live(const C& ctx) { return ctx.app.run->live(); }
bool disconnected(const C& ctx) { return ctx.app.run->disconnected(); }
bool shows_b(const C& ctx) { return ctx.app.shows_b; }
bool is_open(const C& ctx) { return !ctx.app.start_page && !disconnected(ctx); }
bool has_steps(const C& ctx) { return !ctx.app.store().steps().empty(); }
bool has_notes(const C& ctx) { return !ctx.app.notes.notes().empty(); }
bool selected(const C& ctx) { return ctx.app.selection.kind != SelectionKind::none; }
bool has_gates_or_steps(const C& ctx) { return live(ctx) || has_steps(ctx); }
bool has_gates(const C& ctx) { return live(ctx) || ctx.app.store().has_gates(ctx.app.stepper_rank); }

template <Dialog what>
void ask(C& ctx) {
  ctx.ui.open(what);
}
void stop_copy(C& ctx) { ctx.ui.stop_copy = true; }
bool copying(const C& ctx) { return ctx.ui.copying; }
template <int percent>
void zoom(C& ctx) {
  ctx.app.zoom_by_key(percent / 100.0);
}
template <int percent>
void pan(C& ctx) {
  ctx.app.time.go_pan(percent / 100.0, ctx.app.store().end_ns());
  ctx.app.follow = false;
}
template <StepUnit unit, Direction direction>
void step(C& ctx) {
  ctx.app.step(unit, direction);
}
template <int by>
void step_by(C& ctx) {
  const auto steps = ctx.app.store().steps();
  const auto at = step_of(steps, ctx.app.now_ns());
  const auto index = static_cast<std::ptrdiff_t>(at.value_or(0)) + by;
  if (index < 0 || index >= std::ssize(steps)) return;
  ctx.app.go_to_step(steps[static_cast<std::size_t>(index)].step);
}
template <int by>
void micro_step_by(C& ctx) {
  if (!go_to_micro_step(ctx.app, by))
    ctx.ui.say(by < 0 ? "This is the first micro-step" : "This is the last micro-step");
}
void scale_text(C& ctx, float by) {
  ctx.app.text_scale =
      by == 0 ? 1.0F : std::clamp(std::round((ctx.app.text_scale + by) * 10) / 10, 0.7F, 3.0F);
}
void toggle(bool& option) { option = !option; }
void theme(C& ctx) { ctx.app.theme = with_other_ground(ctx.app.theme); }
void pause_or_resume(C& ctx) {
  if (ctx.app.paused())
    ctx.app.resume();
  else
    ctx.app.pause();
}
void play_or_pause(C& ctx) {
  if (live(ctx))
    pause_or_resume(ctx);
  else
    ctx.app.breaks.play(ctx.app, !ctx.app.breaks.playing());
}
bool has_breaks(const C& ctx) { return !live(ctx) && !ctx.app.breaks.list().empty(); }
bool can_break_here(const C& ctx) {
  const SelectionKind kind = ctx.app.selection.kind;
  return kind == SelectionKind::module || kind == SelectionKind::param || kind == SelectionKind::step;
}
void break_at_selection(C& ctx) {
  AppState& app = ctx.app;
  const Selection& s = app.selection;
  const Breakpoint wanted = s.kind == SelectionKind::module ? Breakpoint{BreakKind::module, s.module, 0, true}
                            : s.kind == SelectionKind::param ? Breakpoint{BreakKind::param, s.param, 0, true}
                                                             : Breakpoint{BreakKind::step, s.step, 0, true};
  const auto& list = app.breaks.list();
  if (const auto there = std::ranges::find(list, wanted); there != list.end()) {
    app.breaks.remove(static_cast<std::size_t>(there - list.begin()));
    ctx.ui.say("Breakpoint removed: " + text_of(app.store(), wanted));
    return;
  }
  app.breaks.add(app.store(), wanted);
  ctx.ui.say("Breakpoint: " + text_of(app.store(), wanted));
}
void keep_moment(C& ctx) {
  ctx.app.keep_moment();
  ctx.ui.say("Asked the recorder to keep the events around this time; its reply appears in Messages");
}
void go_back(C& ctx) {
  if (const auto place = ctx.app.history.back(ctx.seconds)) go_to_place(ctx.app, *place);
}
void go_forward(C& ctx) {
  if (const auto place = ctx.app.history.forward(ctx.seconds)) go_to_place(ctx.app, *place);
}
void copy_link(C& ctx) {
  const std::string link = link_of(ctx.app);
  ImGui::SetClipboardText(link.c_str());
  ctx.ui.say("Copied: " + link);
}
void zoom_to_selection(C& ctx) {
  const Selection& s = ctx.app.selection;
  if (s.span) {
    zoom_to_span(ctx.app, s.lane, *s.span);
  } else if (s.step != ev::kNoId) {
    ctx.app.go_to_step(s.step);
  } else if (zoom_to_param(ctx.app)) {
    ctx.ui.show_panel = "partition";
  } else {
    ctx.ui.say("Select a span, a step or a parameter: these have a place on an axis");
  }
}
template <int percent>
void zoom_map(C& ctx) {
  zoom_elements(ctx.app, percent / 100.0);
  ctx.ui.show_panel = "partition";
}
bool has_params(const C& ctx) { return ctx.app.run->elements(ctx.app.element_scale).size() > 0; }
void zoom_to_measured(C& ctx) {
  const TimeRange range = *ctx.app.measured;
  const std::int64_t margin = range.length() / 20;
  ctx.app.follow = false;
  ctx.app.time.go({range.begin_ns - margin, range.end_ns + margin}, ctx.app.store().end_ns());
}
bool has_measured(const C& ctx) { return ctx.app.measured.has_value(); }
void find(C& ctx) {
  ctx.ui.show_panel = "find";
  ctx.app.find.focus = true;
}
void find_what_is_selected(C& ctx) {
  if (find_selection(ctx.app)) ctx.ui.show_panel = "find";
}
template <Toward toward>
void next_hit_of(C& ctx) {
  if (ctx.app.find.search.hits() == 0)
    find(ctx);
  else if (!go_to_next_hit(ctx.app, toward))
    ctx.ui.say(toward == Toward::later ? "No hit after this one" : "No hit before this one");
}
template <RankOrder order>
void sort_ranks(C& ctx) {
  order_ranks(ctx.app, order);
}
template <int places>
void shift_selected_rank(C& ctx) {
  const std::string stays = move_rank(ctx.app, ctx.app.selection.rank, places);
  if (!stays.empty()) ctx.ui.say(stays);
  ctx.ui.show_panel = "timeline";
}
bool can_shift_rank(const C& ctx) {
  return ctx.app.selection.rank != ev::kNoId && ctx.app.store().ranks().size() > 1;
}
bool has_own_order(const C& ctx) { return !ctx.app.timeline.own_order.empty(); }
void slowest(C& ctx) {
  ctx.ui.say(go_to_slowest(ctx.app));
  ctx.ui.show_panel = "timeline";  // shows the rank
}
void filter_ranks(C& ctx) {
  ctx.ui.show_panel = "timeline";
  ctx.app.timeline.focus_filter = true;
}
bool several_ranks(const C& ctx) { return ctx.app.store().ranks().size() > 1; }
bool filters_ranks(const C& ctx) { return !ctx.app.timeline.filter.empty(); }
template <RowCounter counter>
void toggle_row(C& ctx) {
  toggle(ctx.app.timeline, counter);
}
template <RowCounter counter>
bool shows_row(const C& ctx) {
  return ctx.app.timeline.counters.contains(counter);
}
bool param_selected(const C& ctx) { return ctx.app.selection.param != ev::kNoId; }
template <Side side>
void move_panel(C& ctx) {
  ctx.ui.panel_move = PanelMove{PanelMove::What::over, side};
}
template <Side side>
void split_panel(C& ctx) {
  ctx.ui.panel_move = PanelMove{PanelMove::What::split, side};
}
template <Side side>
void resize_panel(C& ctx) {
  ctx.ui.panel_move = PanelMove{PanelMove::What::resize, side};
}
void tear_off(C& ctx) { ctx.ui.panel_move = PanelMove{PanelMove::What::tear_off, {}}; }
void write_note(C& ctx) {
  ctx.ui.note = note_here(ctx.app);
  ctx.ui.open(Dialog::note);
}
template <bool later>
void note_beside_now(C& ctx) {
  if (const Note* const note = note_beside(ctx.app, later))
    go_to_note(ctx.app, Note(*note));
  else
    ctx.ui.say(later ? "No note after this time" : "No note before this time");
}
template <Grip end>
void measure_from_now(C& ctx) {
  AppState& app = ctx.app;
  const auto range = measured_from(app.measured, app.time.range(), end, app.now_ns());
  if (range) app.measured = range;
  ctx.ui.say(!range && end == Grip::begin ? "Nothing to measure between this time and the end of the view"
             : !range                     ? "Nothing to measure between the start of the view and this time"
             : end == Grip::begin         ? "Measured from here; ] sets the end"
                                          : "Measured up to here; [ sets the begin");
}
void clear(C& ctx) {
  if (ctx.ui.captured != nullptr) return;  // Escape then only cancels the drag
  if (ctx.ui.key_tip.shown()) {
    ctx.ui.key_tip.hide();
    return;
  }
  if (ctx.ui.help)
    ctx.ui.help = false;
  else if (ctx.ui.tour)
    ctx.ui.tour.reset();
  else if (ctx.app.selection.kind != SelectionKind::none)
    ctx.app.clear_selection();
  else if (ctx.app.measured)
    ctx.app.measured.reset();
  else
    ctx.app.cursor_ns.reset();
}

constexpr int kNone = 0, kShift = key::kShift, kCtrl = key::kCtrl, kAlt = key::kAlt,
              kCtrlShift = key::kCtrl | key::kShift, kAltShift = key::kAlt | key::kShift;

const Command kCommands[] = {
    {Menu::file, "Open recording...", "Ctrl+O", 'O', kCtrl, ask<Dialog::open_recording>},
    {Menu::file, "Compare with recording...", "Ctrl+Shift+O", 'O', kCtrlShift, ask<Dialog::open_second>},
    {Menu::file, "Compare with live run...", "", 0, kNone, ask<Dialog::connect_second>,
     [](const C& ctx) { return !ctx.app.start_page; }},
    {Menu::file, "Connect to a run...", "Ctrl+Shift+C", 'C', kCtrlShift, ask<Dialog::connect>},
    {Menu::file, "Record a copy...", "", 0, kNone, ask<Dialog::record_copy>,
     [](const C& ctx) { return live(ctx) && !copying(ctx); }},
    {Menu::file, "Stop recording the copy", "", 0, kNone, stop_copy, copying},
    {Menu::file, "Export report (HTML)...", "", 0, kNone, ask<Dialog::export_report>, is_open, nullptr, true},
    {Menu::file, "Export tables (CSV)...", "", 0, kNone, ask<Dialog::export_csv>, is_open},
    {Menu::file, "Export trace (Chrome JSON)...", "", 0, kNone, ask<Dialog::export_chrome>, is_open},
    {Menu::file, "Export trace (Perfetto)...", "", 0, kNone, ask<Dialog::export_perfetto>, is_open},
    {Menu::file, "Export trace (PyTorch Kineto)...", "", 0, kNone, ask<Dialog::export_kineto>, is_open},
    {Menu::file, "Export database (SQLite)...", "", 0, kNone, ask<Dialog::export_sqlite>, is_open},
    {Menu::file, "Save picture (PNG)...", "", 0, kNone, ask<Dialog::save_picture>,
     [](const C& ctx) { return !ctx.app.start_page; }},
    {Menu::file, "Cancel the export", "", 0, kNone, [](C& ctx) { ctx.ui.cancel_export = true; },
     [](const C& ctx) { return ctx.ui.exporting; }},
    {Menu::file, "Trace info", "", 0, kNone, [](C& ctx) { ctx.ui.show_panel = "trace_info"; }, nullptr,
     nullptr, true},
    {Menu::file, "Quit", "Ctrl+Q", 'Q', kCtrl, [](C& ctx) { ctx.app.quit = true; }, nullptr, nullptr, true},

    {Menu::view, "Dark theme", "T", 'T', kNone, theme, nullptr,
     [](const C& ctx) { return is_dark(ctx.app.theme); }},
    {Menu::view, "Colours for colour blindness", "", 0, kNone,
     [](C& ctx) { ctx.app.theme = with_other_colours(ctx.app.theme); }, nullptr,
     [](const C& ctx) { return is_for_colour_blind(ctx.app.theme); }},
    {Menu::view, "Show the other run of the comparison", "X", 'X', kNone,
     [](C& ctx) { ctx.app.show_other_run(); }, [](const C& ctx) { return ctx.app.other != nullptr; },
     shows_b},
    {Menu::view, "Options", "", 0, kNone, [](C& ctx) { ctx.ui.show_panel = "options"; }},
    {Menu::view, "Ranks by number", "", 0, kNone, sort_ranks<RankOrder::number>, nullptr,
     [](const C& ctx) { return ctx.app.timeline.order == RankOrder::number; }, true},
    {Menu::view, "Ranks by computation", "", 0, kNone, sort_ranks<RankOrder::computation>, nullptr,
     [](const C& ctx) { return ctx.app.timeline.order == RankOrder::computation; }},
    {Menu::view, "Ranks by exposed communication", "", 0, kNone, sort_ranks<RankOrder::exposed>, nullptr,
     [](const C& ctx) { return ctx.app.timeline.order == RankOrder::exposed; }},
    {Menu::view, "Ranks in your own order", "", 0, kNone, sort_ranks<RankOrder::own>, has_own_order,
     [](const C& ctx) { return ctx.app.timeline.order == RankOrder::own; }},
    {Menu::view, "Move the selected rank up", "Alt+Up", key::kUp, kAlt, shift_selected_rank<-1>,
     can_shift_rank},
    {Menu::view, "Move the selected rank down", "Alt+Down", key::kDown, kAlt, shift_selected_rank<1>,
     can_shift_rank},
    {Menu::view, "Group ranks by the next kind of group", "", 0, kNone,
     [](C& ctx) { next_grouping(ctx.app); }, several_ranks},
    {Menu::view, "Filter ranks...", "", 0, kNone, filter_ranks, several_ranks, filters_ranks},
    {Menu::view, "Show all ranks", "", 0, kNone, [](C& ctx) { ctx.app.timeline.filter.clear(); },
     filters_ranks},
    {Menu::view, "Link memory to the timeline", "", 0, kNone,
     [](C& ctx) { toggle(ctx.app.timeline.view.memory_linked); }, nullptr,
     [](const C& ctx) { return ctx.app.timeline.view.memory_linked; }},
    {Menu::view, "Link plots per step to the timeline", "", 0, kNone,
     [](C& ctx) { toggle(ctx.app.timeline.view.steps_linked); }, nullptr,
     [](const C& ctx) { return ctx.app.timeline.view.steps_linked; }},
    {Menu::view, "Show all levels of every lane", "", 0, kNone,
     [](C& ctx) { ctx.app.timeline.crops.clear(); },
     [](const C& ctx) { return !ctx.app.timeline.crops.empty(); }},
    {Menu::view, "Row: live elements", "", 0, kNone, toggle_row<RowCounter::live_elements>, nullptr,
     shows_row<RowCounter::live_elements>, true},
    {Menu::view, "Row: memory in use", "", 0, kNone, toggle_row<RowCounter::memory>, nullptr,
     shows_row<RowCounter::memory>},
    {Menu::view, "Row: bytes in flight", "", 0, kNone, toggle_row<RowCounter::in_flight>, nullptr,
     shows_row<RowCounter::in_flight>},
    {Menu::view, "Row: outside memory", "", 0, kNone, toggle_row<RowCounter::outside>, nullptr,
     shows_row<RowCounter::outside>},
    {Menu::view, "Row: loss", "", 0, kNone, toggle_row<RowCounter::loss>, nullptr,
     shows_row<RowCounter::loss>},
    {Menu::view, "Row: step time", "", 0, kNone, toggle_row<RowCounter::step_time>, nullptr,
     shows_row<RowCounter::step_time>},
    {Menu::view, "Row: tokens/s", "", 0, kNone, toggle_row<RowCounter::throughput>, nullptr,
     shows_row<RowCounter::throughput>},
    {Menu::view, "Row: gradient norm", "", 0, kNone, toggle_row<RowCounter::gradient_norm>, nullptr,
     shows_row<RowCounter::gradient_norm>},
    {Menu::view, "Row: learning rate", "", 0, kNone, toggle_row<RowCounter::learning_rate>, nullptr,
     shows_row<RowCounter::learning_rate>},
    {Menu::view, "Row: loss scale", "", 0, kNone, toggle_row<RowCounter::loss_scale>, nullptr,
     shows_row<RowCounter::loss_scale>},
    {Menu::view, "Row: statuses of the selected parameter", "", 0, kNone, follow_selected, param_selected,
     follows_selected},
    {Menu::view, "Next panel", "F6", key::kF1 + 5, kNone, [](C& ctx) { ctx.ui.next_panel = 1; }, nullptr,
     nullptr, true, Context::WithShift::other},
    {Menu::view, "Previous panel", "Shift+F6", key::kF1 + 5, kShift, [](C& ctx) { ctx.ui.next_panel = -1; }},
    {Menu::view, "Tool tip of what has the keyboard", "F4", key::kF1 + 3, kNone,
     [](C& ctx) { ctx.ui.key_tip.toggle(); }, nullptr, [](const C& ctx) { return ctx.ui.key_tip.shown(); }},
    {Menu::view, "Larger text", "Ctrl+=", key::kEqual, kCtrl, [](C& ctx) { scale_text(ctx, 0.1F); }, nullptr,
     nullptr, true},
    {Menu::view, "Smaller text", "Ctrl+-", key::kMinus, kCtrl, [](C& ctx) { scale_text(ctx, -0.1F); }},
    {Menu::view, "Reset text size", "Ctrl+0", '0', kCtrl, [](C& ctx) { scale_text(ctx, 0); }},
    {Menu::view, "Save layout as...", "", 0, kNone, ask<Dialog::save_layout>, nullptr, nullptr, true},
    {Menu::view, "Reset layout", "", 0, kNone, [](C& ctx) { ctx.ui.reset_layout = true; }},

    {Menu::go, "Command or place...", "Ctrl+P", 'P', kCtrl, ask<Dialog::palette>},
    {Menu::go, "Go to step, time, rank or link...", "Ctrl+G", 'G', kCtrl, ask<Dialog::go_to>},
    {Menu::go, "Go to the slowest rank", "", 0, kNone, slowest, several_ranks},
    {Menu::go, "Find...", "Ctrl+F", 'F', kCtrl, find, nullptr, nullptr, true},
    {Menu::go, "Find what is selected", "Ctrl+Shift+F", 'F', kCtrlShift, find_what_is_selected, selected},
    {Menu::go, "Next hit", "F3", key::kF3, kNone, next_hit_of<Toward::later>, nullptr, nullptr, false,
     Context::WithShift::other},
    {Menu::go, "Previous hit", "Shift+F3", key::kF3, kShift, next_hit_of<Toward::earlier>},
    {Menu::go, "Measure from here", "[", '[', kNone, measure_from_now<Grip::begin>, has_steps, nullptr, true},
    {Menu::go, "Measure up to here", "]", ']', kNone, measure_from_now<Grip::end>, has_steps},
    {Menu::go, "Note here, or on the measured range...", "B", 'B', kNone, write_note, nullptr, nullptr, true,
     Context::WithShift::other},
    {Menu::go, "Next note", "Shift+B", 'B', kShift, note_beside_now<true>, has_notes},
    {Menu::go, "Previous note", "Alt+B", 'B', kAlt, note_beside_now<false>, has_notes},
    {Menu::go, "Copy link of this place", "Ctrl+L", 'L', kCtrl, copy_link, nullptr, nullptr, true},
    {Menu::go, "Back", "Alt+Left", key::kLeft, kAlt, go_back,
     [](const C& ctx) { return ctx.app.history.can_go_back(); }, nullptr, true},
    {Menu::go, "Forward", "Alt+Right", key::kRight, kAlt, go_forward,
     [](const C& ctx) { return ctx.app.history.can_go_forward(); }},
    {Menu::go, "Undo navigation", "Ctrl+Z", 'Z', kCtrl, go_back,
     [](const C& ctx) { return ctx.app.history.can_go_back(); }},
    {Menu::go, "Redo navigation", "Ctrl+Y", 'Y', kCtrl, go_forward,
     [](const C& ctx) { return ctx.app.history.can_go_forward(); }},
    {Menu::go, "Whole run", "F", 'F', kNone, [](C& ctx) { ctx.app.fit(); }, nullptr, nullptr, true},
    {Menu::go, "Zoom to selection", "Z", 'Z', kNone, zoom_to_selection, selected},
    {Menu::go, "Zoom to measured range", "Shift+Z", 'Z', kShift, zoom_to_measured, has_measured},
    {Menu::go, "Partition map: zoom in", "Shift+W", 'W', kShift, zoom_map<50>, has_params},
    {Menu::go, "Partition map: zoom out", "Shift+S", 'S', kShift, zoom_map<200>, has_params},
    {Menu::go, "Zoom in", "W", 'W', kNone, zoom<75>, nullptr, nullptr, false, Context::WithShift::other},
    {Menu::go, "Zoom out", "S", 'S', kNone, zoom<133>, nullptr, nullptr, false, Context::WithShift::other},
    {Menu::go, "Earlier", "A", 'A', kNone, pan<-15>},
    {Menu::go, "Later", "D", 'D', kNone, pan<15>},
    {Menu::go, "Previous step", "Page Up", 266, kNone, step_by<-1>, has_steps, nullptr, true,
     Context::WithShift::other},
    {Menu::go, "Next step", "Page Down", 267, kNone, step_by<1>, has_steps, nullptr, false,
     Context::WithShift::other},
    {Menu::go, "Show the previous micro-step", "Shift+Page Up", 266, kShift, micro_step_by<-1>, has_steps},
    {Menu::go, "Show the next micro-step", "Shift+Page Down", 267, kShift, micro_step_by<1>, has_steps},
    {Menu::go, "Clear selection, measure, then cursor", "Esc", key::kEscape, kNone, clear},

    {Menu::run, "Pause or resume; play a recording", "Space", key::kSpace, kNone, play_or_pause,
     has_gates_or_steps},
    {Menu::run, "Toggle breakpoint at selection", "F9", key::kF1 + 8, kNone, break_at_selection,
     can_break_here},
    {Menu::run, "To the next breakpoint", "F8", key::kF1 + 7, kNone,
     [](C& ctx) { ctx.app.breaks.to_next(ctx.app); }, has_breaks},
    {Menu::run, "Keep this moment in the recording", "", 0, kNone, keep_moment, live},
    {Menu::run, "Connection", "", 0, kNone, [](C& ctx) { ctx.ui.show_panel = "connection"; },
     [](const C& ctx) { return live(ctx) || disconnected(ctx); }},
    {Menu::run, "Disconnect", "", 0, kNone, [](C& ctx) { ctx.app.run->disconnect(); }, live},
    {Menu::run, "Reconnect", "Ctrl+Shift+R", 'R', kCtrlShift, [](C& ctx) { ctx.app.reconnect(); },
     [](const C& ctx) { return live(ctx) || disconnected(ctx); }},
    {Menu::run, "Follow newest events", "L", 'L', kNone, [](C& ctx) { ctx.app.toggle_follow(); }, live,
     [](const C& ctx) { return ctx.app.follow && ctx.app.run->live(); }},
    {Menu::run, "Next event", "Right", key::kRight, kNone, step<StepUnit::event, Direction::forward>,
     has_gates, nullptr, true},
    {Menu::run, "Previous event", "Left", key::kLeft, kNone, step<StepUnit::event, Direction::backward>,
     has_gates},
    {Menu::run, "Next event (letter key)", "E", 'E', kNone, step<StepUnit::event, Direction::forward>,
     has_gates},
    {Menu::run, "Next module", "M", 'M', kNone, step<StepUnit::module, Direction::forward>, has_gates},
    {Menu::run, "Previous module", "", 0, kNone, step<StepUnit::module, Direction::backward>, has_gates},
    {Menu::run, "Next micro-step", "U", 'U', kNone, step<StepUnit::micro_step, Direction::forward>,
     has_gates},
    {Menu::run, "Previous micro-step", "", 0, kNone, step<StepUnit::micro_step, Direction::backward>,
     has_gates},
    {Menu::run, "Start of next step", "N", 'N', kNone, step<StepUnit::step, Direction::forward>, has_gates},

    {Menu::panel, "Panel: move left", "Ctrl+Shift+Left", key::kLeft, kCtrlShift, move_panel<Side::left>},
    {Menu::panel, "Panel: move right", "Ctrl+Shift+Right", key::kRight, kCtrlShift, move_panel<Side::right>},
    {Menu::panel, "Panel: move up", "Ctrl+Shift+Up", key::kUp, kCtrlShift, move_panel<Side::up>},
    {Menu::panel, "Panel: move down", "Ctrl+Shift+Down", key::kDown, kCtrlShift, move_panel<Side::down>},
    {Menu::panel, "Panel: out of its tabs, left", "", 0, kNone, split_panel<Side::left>, nullptr, nullptr,
     true},
    {Menu::panel, "Panel: out of its tabs, right", "", 0, kNone, split_panel<Side::right>},
    {Menu::panel, "Panel: out of its tabs, above", "", 0, kNone, split_panel<Side::up>},
    {Menu::panel, "Panel: out of its tabs, below", "", 0, kNone, split_panel<Side::down>},
    {Menu::panel, "Panel: wider", "Alt+Shift+Right", key::kRight, kAltShift, resize_panel<Side::right>,
     nullptr, nullptr, true},
    {Menu::panel, "Panel: narrower", "Alt+Shift+Left", key::kLeft, kAltShift, resize_panel<Side::left>},
    {Menu::panel, "Panel: taller", "Alt+Shift+Down", key::kDown, kAltShift, resize_panel<Side::down>},
    {Menu::panel, "Panel: shorter", "Alt+Shift+Up", key::kUp, kAltShift, resize_panel<Side::up>},
    {Menu::panel, "Panel: into a window of its own, or back", "Ctrl+Shift+W", 'W', kCtrlShift, tear_off,
     nullptr, nullptr, true},

    {Menu::help, "Keys and colours", "F1 or ?", key::kF1, kNone, [](C& ctx) { ctx.ui.help = !ctx.ui.help; }},
    {Menu::help, "Tour of the window", "", 0, kNone, [](C& ctx) { ctx.ui.tour = 0; }},
    {Menu::help, "Tour on a sample run", "", 0, kNone, [](C& ctx) { ctx.ui.sample = true; }},
    {Menu::help, "About", "", 0, kNone, ask<Dialog::about>},
};

}  // namespace

const char* name_of(Menu menu) noexcept {
  static constexpr const char* kNames[] = {"File", "View", "Go", "Run", "Help", "Panel"};
  return kNames[static_cast<int>(menu)];
}

std::span<const Command> commands() { return kCommands; }

std::string_view also_called(const Command& command) noexcept {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"Record a copy...", "save the live run, recording, zscope"},
      {"Show the other run of the comparison", "A, B, second run, switch"},
      {"Dark theme", "light theme, switch themes"},
      {"Colours for colour blindness", "theme, palette, deuteranopia, protanopia, tritanopia"},
      {"Options", "settings, preferences, theme, scale, step time target"},
      {"Larger text", "scale, zoom, size, font"},
      {"Smaller text", "scale, zoom, size, font"},
      {"Reset text size", "scale, zoom, size, font"},
      {"Link memory to the timeline", "axes, range"},
      {"Link plots per step to the timeline", "axes, range, loss"},
      {"Whole run", "fit, show all"},
      {"Zoom to selection", "fit selection"},
      {"Zoom to measured range", "fit range"},
      {"Keys and colours", "shortcuts, legend, help"},
      {"Go to the slowest rank", "straggler"},
      {"Panel: into a window of its own, or back", "tear off, undock, dock, float"},
      {"Tool tip of what has the keyboard", "tooltip, hover"},
  };
  for (const auto& [name, words] : kWords)
    if (name == command.name) return words;
  return {};
}

}  // namespace shardscope::gui
