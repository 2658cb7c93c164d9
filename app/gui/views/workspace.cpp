#include "app/gui/views/workspace.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "app/gui/model/clock_bound.h"
#include "app/gui/model/format.h"
#include "app/gui/model/history_text.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/run_to.h"
#include "app/store/control_text.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"

namespace shardscope::gui {
namespace {

constexpr float kTopBar = 40;
constexpr float kStepRuler = 48;
constexpr float kStatusBar = 24;
constexpr float kPanelTitle = 30;
constexpr ImGuiWindowFlags kHost = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoBackground |
                                   ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoScrollWithMouse;

}  // namespace

void Workspace::draw(Context& ctx, std::string_view only) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  placed_.clear();
  app.place_once();
  app.advance();
  const bool all = only.empty() || only == "workspace";
  if (all) keys(ctx);
  ImGui::SetNextWindowPos({ctx.window.x, ctx.window.y});
  ImGui::SetNextWindowSize({ctx.window.w, ctx.window.h});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::Begin("##workspace", nullptr, kHost);
  ImGui::PopStyleVar();
  ctx.enter_window();
  Rect room = ctx.window;
  ctx.canvas.fill(room, c.base);
  if (all) {
    top_bar(ctx, room.take_top(kTopBar));
    banner(ctx, room);
    const Rect ruler = room.take_top(kStepRuler);
    placed_.push_back({"steps", ruler});
    step_ruler(ctx, ruler);
    status_bar(ctx, room.take_bottom(kStatusBar));
    docks_.submit(app.layout_name, room);
  } else if (View* const view = registry_.find(only)) {
    panel(ctx, *view, room, true);
  }
  ImGui::End();
  if (all) panels(ctx);
  above(ctx);
  // What was held and is no longer drawn would be held for ever.
  if (std::ranges::none_of(ctx.pointer.down, std::identity{})) ctx.ui.captured = nullptr;
}

/// What lies above the panels: the sheet of keys, menus, tool tips, the frame of a run that is paused.
void Workspace::above(Context& ctx) {
  const bool covers = ctx.ui.help || ctx.ui.overlay.open;
  if (covers) {
    ImGui::SetNextWindowPos({ctx.window.x, ctx.window.y});
    ImGui::SetNextWindowSize({ctx.window.w, ctx.window.h});
    ImGui::SetNextWindowFocus();
    ImGui::Begin("##above", nullptr, (kHost & ~ImGuiWindowFlags_NoBringToFrontOnFocus));
    ctx.enter_window();
    help(ctx);
    ctx.draw_overlay();
    ImGui::End();
  } else {
    help_shown_ = false;
  }
  ctx.canvas.draw_on(ImGui::GetForegroundDrawList());
  ctx.draw_tip();
  if (ctx.app.paused()) ctx.canvas.outline(ctx.window, ctx.colors().accent, 1, 3);
}

void Workspace::panels(Context& ctx) {
  if (!ctx.app.wanted_panel.empty()) {
    if (registry_.find(ctx.app.wanted_panel) != nullptr) docks_.open(ctx.app.layout_name, ctx.app.wanted_panel);
    docks_.bring_to_front(ctx.app.layout_name, ctx.app.wanted_panel);
    ctx.app.wanted_panel.clear();
  }
  // A copy: a panel may be closed while they are drawn.
  const std::vector<std::string> shown = docks_.shown(ctx.app.layout_name);
  for (const std::string& name : shown) panel_window(ctx, name);
}

void Workspace::panel_window(Context& ctx, const std::string& name) {
  View* const view = registry_.find(name);
  if (view == nullptr) return;  // of a settings file of another version
  const std::string layout = ctx.app.layout_name;
  bool open = true;
  ImGui::SetNextWindowSize({640, 360}, ImGuiCond_FirstUseEver);
  const bool drawn = ImGui::Begin(Docks::window_name(layout, name, view->title()).c_str(), &open,
                                  ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoScrollbar |
                                      ImGuiWindowFlags_NoScrollWithMouse |
                                      ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav);
  if (drawn) {
    ctx.enter_window();
    ImGuiWindow* const window = ImGui::GetCurrentWindow();
    const ImGuiDockNode* const node = window->DockNode;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 size = ImGui::GetContentRegionAvail();
    const Rect room{at.x, at.y, size.x, size.y};
    placed_.push_back({name, room});
    // Alone in its place it has no tab, and no bar of its own as out of the dock space: its title is what it
    // is taken hold of by.
    const bool alone = node != nullptr && node->IsHiddenTabBar() &&
                       ImGui::DockNodeGetRootNode(window->DockNode)->IsDockSpace();
    const Rect title = panel(ctx, *view, room, alone);
    switch (ctx.drag(view, title, 0)) {
      case Context::Drag::clicked:
        panel_menu(ctx, *view, title);
        break;
      case Context::Drag::going:
        ctx.ui.captured = nullptr;
        ImGui::StartMouseMovingWindowOrNode(window, window->DockNode, true);
        break;
      default:
        break;
    }
  }
  ImGui::End();
  if (!open) docks_.close(layout, name);
}

Rect Workspace::panel(Context& ctx, View& view, Rect room, bool named) {
  const Palette& c = ctx.colors();
  const Clip clip(ctx.canvas, room);
  ctx.canvas.fill(room, c.panel);
  Rect head = room.take_top(kPanelTitle);
  head.x += 12;
  head.w -= 20;
  const float title_width = named ? ctx.canvas.width(view.title(), Font::strong) : 0;
  const Rect name{head.x, head.y, title_width + 18, head.h};
  Rect tools{name.right() + 8, head.y + 4, head.right() - name.right() - 8, head.h - 8};
  const bool over = ctx.hovered(name);
  if (named) ctx.canvas.text_in(name, view.title(), over ? c.accent : c.text, Font::strong);
  if (over) ctx.tip("Click for another panel here; drag to move it, to another edge, as a tab or on its own");
  const float x = name.right() - 8;
  const float y = name.y + name.h / 2;
  ctx.canvas.triangle(x - 3, y - 1, x + 3, y - 1, x, y + 3, c.muted, over ? 1.0F : 0.6F);
  if (view.analysed()) partial_mark(ctx, tools);
  if (tools.w > 40) view.header(ctx, tools);
  view.draw(ctx, room);
  return name;
}

void Workspace::panel_menu(Context& ctx, const View& view, const Rect& title) {
  std::vector<OverlayItem> items;
  const std::string layout = ctx.app.layout_name;
  const std::string here(view.name());
  for (const auto& other : registry_.all()) {
    const std::string chosen(other->name());
    items.push_back({std::string(other->title()), "", true, other.get() == &view,
                     [this, layout, here, chosen] { docks_.replace(layout, here, chosen); }});
  }
  items.push_back({"Close this panel", "", docks_.shown(layout).size() > 1, false,
                   [this, layout, here] { docks_.close(layout, here); }});
  ctx.menu(title, std::move(items));
}

void Workspace::layout_menu(Context& ctx, const Rect& anchor) {
  AppState& app = ctx.app;
  std::vector<OverlayItem> items;
  int key = 1;
  for (const std::string& name : layout_names()) {
    items.push_back(
        {name, std::to_string(key++), true, name == app.layout_name, [&app, name] { app.set_layout(name); }});
  }
  const std::string layout = app.layout_name;
  const std::vector<std::string>& shown = docks_.shown(layout);
  for (const auto& view : registry_.all()) {
    const std::string name(view->name());
    if (std::ranges::find(shown, name) != shown.end()) continue;
    items.push_back({"Add " + std::string(view->title()), "", true, false,
                     [this, layout, name] { docks_.open(layout, name); }});
  }
  items.push_back({"As it was at first", "", true, false, [this, layout] { docks_.reset(layout); }});
  ctx.menu(anchor, std::move(items));
}

void Workspace::partial_mark(Context& ctx, Rect& room) {
  std::string mark = ctx.app.run->partial();
  if (mark.empty() && ctx.app.other) mark = ctx.app.other->partial();
  const bool all_that_is_kept = mark.empty();
  if (all_that_is_kept) mark = steps_kept(*ctx.app.run);
  if (mark.empty()) return;
  const Rect place = room.take_left(std::min(room.w, ctx.canvas.width(mark, Font::small) + 1));
  const bool cut = ctx.canvas.text_in(place, mark, ctx.colors().of(Meaning::reduce), Font::small);
  room.take_left(12);
  if (ctx.hovered(place))
    ctx.tip((cut ? mark + ". " : std::string()) +
            (all_that_is_kept
                 ? "Figures and findings here are of these steps. " + eviction_text(ctx.app.store())
                 : "Figures and findings here are of these steps so far; the rest is being analysed"));
}

void Workspace::top_bar(Context& ctx, Rect rect) {
  const Palette& c = ctx.colors();
  AppState& app = ctx.app;
  ctx.canvas.fill(rect, c.panel);
  ctx.canvas.horizontal(rect.x, rect.bottom() - 1, rect.w, c.line);
  Rect room = rect.inset(12, 8);
  placed_.push_back({"top", rect});
  controls(ctx, room);
  const Identity identity = identify(app.store());
  const float name = std::min(room.w, ctx.canvas.width(identity.model, Font::strong) + 16);
  ctx.canvas.text_in(room.take_left(name), identity.model, c.text, Font::strong);
  for (const std::string& fact : identity.facts) {
    const float w = ctx.canvas.width(fact, Font::body) + 16;
    if (room.w < w) break;
    if (fact == kSimulated) {
      const Rect badge = room.take_left(w);
      ctx.canvas.fill({badge.x - 2, badge.y + 1, badge.w - 6, badge.h - 2}, c.accent, 1, 4);
      ctx.canvas.text_in({badge.x + 3, badge.y, badge.w - 11, badge.h}, fact, c.on_fill);
      room.take_left(8);
      continue;
    }
    ctx.canvas.text_in(room.take_left(w), fact, c.muted);
  }
  room.take_left(8);
  if (room.w < 60) return;
  ctx.canvas.vertical(room.x, room.y + 2, room.h - 4, c.line);
  room.take_left(12);
  const auto steps = app.store().steps();
  const std::optional<std::size_t> at = step_of(steps, app.now_ns());
  const std::optional<std::size_t> measured = measured_step_of(steps, app.now_ns());
  const store::StepRow* const done = measured ? &steps[*measured] : nullptr;
  struct Figure {
    const char* label;
    Quantity value;
    std::string formula;
  };
  std::vector<Figure> figures;
  if (done != nullptr) {
    const std::int64_t length = done->end_ns - done->begin_ns - done->paused_ns;
    figures.push_back({"step",
                       {std::to_string(done->step), ""},
                       measured == at
                           ? "The step at the time shown"
                           : "The last step that has ended: step " + std::to_string(steps[*at].step) +
                                 ", at the time shown, has not"});
    figures.push_back({"", duration(length), "Last end - first begin over ranks, pauses cut out"});
    if (done->tokens > 0 && length > 0) {
      figures.push_back(
          {"", count(static_cast<double>(done->tokens) * 1e9 / static_cast<double>(length), "tok/s"),
           "Tokens of all ranks / step time"});
    }
    figures.push_back({"loss", {decimal(done->loss, 3), ""}, "Mean over ranks and micro-steps"});
  }
  for (const Figure& figure : figures) {
    const float label = figure.label[0] == 0 ? 0 : ctx.canvas.width(figure.label, Font::small) + 6;
    const float number = ctx.canvas.width(figure.value.number, Font::mono) + 1;
    const float unit = figure.value.unit.empty() ? 0 : ctx.canvas.width(figure.value.unit, Font::small) + 5;
    if (room.w < label + number + unit) break;
    const Rect all{room.x, room.y, label + number + unit, room.h};
    if (label > 0) ctx.canvas.text_in(room.take_left(label), figure.label, c.muted, Font::small);
    ctx.canvas.text_in(room.take_left(number), figure.value.number, c.text, Font::mono);
    if (unit > 0) {
      room.take_left(4);
      ctx.canvas.text_in(room.take_left(unit - 4 + 1), figure.value.unit, c.muted, Font::small);
    }
    if (ctx.hovered(all)) ctx.tip(figure.formula);
    room.take_left(16);
  }
}

void Workspace::controls(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  if (ctx.button_right(room, "?", true, Context::Look::plain, "Keys and colours")) ctx.ui.help = true;
  if (ctx.button_right(room, app.theme == ThemeKind::dark ? "Light" : "Dark", true, Context::Look::plain,
                       "Theme (T)")) {
    app.theme = app.theme == ThemeKind::dark ? ThemeKind::light : ThemeKind::dark;
  }
  Rect layout_place;
  if (ctx.menu_button_right(room, "Layout: " + app.layout_name, layout_place, true, "Layout (1 to 5)")) {
    layout_menu(ctx, layout_place);
  }
  room.take_right(12);
  const bool live = app.run->live();
  const collector::ControlState control = app.run->control();
  const bool stopped = control.paused || control.pausing;
  Rect step_place;
  if (live) {
    if (ctx.button_right(room, "Resume", control.paused,
                         control.paused ? Context::Look::primary : Context::Look::plain,
                         "Let the run go on (space)")) {
      app.resume();
    }
    if (ctx.menu_button_right(room, "Step", step_place, control.paused,
                              "Run to the next event, module, micro-step or step")) {
      step_menu(ctx, step_place);
    }
    if (ctx.button_right(room, control.pausing ? "Pausing" : "Pause",
                         !stopped && app.run->link() == collector::Viewer::Link::live, Context::Look::plain,
                         "Hold every rank at the next gate (space)")) {
      app.pause();
    }
    return;
  }
  if (!app.store().has_gates(app.stepper_rank)) return;
  if (ctx.menu_button_right(room, "Step", step_place, true, "Move the cursor along the gates"))
    step_menu(ctx, step_place);
  if (ctx.button_right(room, ">", true, Context::Look::plain, "Next event (right arrow)"))
    app.step(StepUnit::event, Direction::forward);
  if (ctx.button_right(room, "<", true, Context::Look::plain, "Previous event (left arrow)"))
    app.step(StepUnit::event, Direction::backward);
}

void Workspace::step_menu(Context& ctx, const Rect& anchor) {
  AppState& app = ctx.app;
  std::vector<OverlayItem> items;
  const auto add = [&](const char* label, const char* key, StepUnit unit) {
    items.push_back({label, key, true, false, [&app, unit] { app.step(unit, Direction::forward); }});
  };
  add("Next event", "E", StepUnit::event);
  add("Next module", "M", StepUnit::module);
  add("Next micro-step", "", StepUnit::micro_step);
  add("Next step", "N", StepUnit::step);
  ctx.menu(anchor, std::move(items));
}

void Workspace::banner(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  const collector::ControlState control = app.run->control();
  const collector::Viewer::Link link = app.run->link();
  std::string text;
  std::string hint;
  Rgb color = c.accent;
  if (app.run->live() && control.paused) {
    const GatePosition at = gate_position(app.store(), app.stepper_rank, app.store().end_ns());
    text = "Paused at gate " + grouped(static_cast<std::int64_t>(control.gate)) +
           (at.known ? ", " + at.place : std::string());
    hint = "resumes by itself in " + decimal(control.lease_left_s, 0) + " s if this window goes away";
  } else if (app.run->live() && link == collector::Viewer::Link::lost) {
    color = c.of(Meaning::trouble);
    text = "Connection to " + app.run->source() + " is lost";
    hint = "what had arrived stays; trying again";
  } else if (app.run->live() && link == collector::Viewer::Link::connecting) {
    text = "Connecting to " + app.run->source();
  } else if (app.run->live() && link == collector::Viewer::Link::catching_up) {
    text = "Catching up with the run";
  } else {
    if (const auto failure = store::first_failure(app.store())) {
      color = c.of(Meaning::trouble);
      text = "R" + store::text_of(*failure).substr(1) + " at " + store::seconds_text(failure->at_ns);
      hint = store::words_on(app.store(), *failure);
    }
  }
  if (text.empty() && app.run->info() && !app.run->info()->problems.empty()) {
    color = c.of(Meaning::reduce);
    text = "This recording is not whole";
    hint = app.run->info()->problems.front();
    if (app.run->info()->problems.size() > 1)
      hint += " (and " + std::to_string(app.run->info()->problems.size() - 1) + " more)";
  }
  if (text.empty()) return;
  const Rect strip = room.take_top(26);
  ctx.canvas.fill(strip, mix(c.panel, color, 0.30F));
  ctx.canvas.fill({strip.x, strip.y, 4, strip.h}, color);
  Rect line = strip.inset(16, 0);
  const float w = std::min(line.w, ctx.canvas.width(text, Font::strong) + 16);
  ctx.canvas.text_in(line.take_left(w), text, c.text, Font::strong);
  if (ctx.canvas.text_in(line, hint, mix(c.muted, c.text, 0.4F)) && ctx.hovered(line)) ctx.tip(hint);
}

/// Pauses, steps and changes of detail, with their origin; read again when there is another message.
void Workspace::what_was_done(const store::Store& store) {
  const auto messages = store.messages();
  const std::pair<std::size_t, std::int64_t> of{messages.size(),
                                                messages.empty() ? 0 : messages.back().at_ns};
  if (of == done_.of) return;
  done_ = {of, {}, {}, store::detail_was_lowered(messages)};
  const std::vector<std::string> lines = store::control_lines(messages, 8);
  for (const std::string& line : lines) {
    done_.all += (done_.all.empty() ? "" : "\n") + line;
    // A detail that was lowered stays in sight, whatever was done since.
    if (!done_.lowered || line.starts_with(store::kDetailLowered.substr(store::kControlPrefix.size())))
      done_.newest = line;
  }
}

void Workspace::status_bar(Context& ctx, Rect rect) {
  AppState& app = ctx.app;
  const Palette& c = ctx.colors();
  ctx.canvas.fill(rect, c.panel);
  ctx.canvas.horizontal(rect.x, rect.y, rect.w, c.line);
  Rect room = rect.inset(12, 0);
  const auto piece = [&](std::string_view text, Rgb color, std::string_view tip) {
    const float w = ctx.canvas.width(text, Font::small) + 1;
    if (text.empty() || room.w < std::min(w, 40.0F)) return;
    const Rect place = room.take_left(std::min(w, room.w));
    ctx.canvas.text_in(place, text, color, Font::small);
    if (!tip.empty() && ctx.hovered(place)) ctx.tip(tip);
    room.take_left(20);
  };
  const std::size_t found = app.run->findings().size();
  std::size_t serious = 0;
  for (const analysis::Finding& finding : app.run->findings())
    serious += finding.severity != ev::Severity::info ? 1 : 0;
  const std::string findings = std::to_string(found) + (found == 1 ? " finding" : " findings");
  const Rect right = room.take_right(ctx.canvas.width(findings, Font::small) + 14);
  if (serious > 0) ctx.canvas.disc(right.x + 4, right.y + right.h / 2, 3.5F, c.of(Meaning::trouble));
  ctx.canvas.text_in({right.x + 12, right.y, right.w - 12, right.h}, findings, serious > 0 ? c.text : c.muted,
                     Font::small);
  if (ctx.hovered(right)) ctx.tip("Diagnoses of this run: open the Findings panel from any panel's title");

  std::string source = app.run->source();
  if (const std::size_t slash = source.rfind('/'); !app.run->live() && slash != std::string::npos)
    source = source.substr(slash + 1);
  piece(source, c.text, app.run->source());
  if (app.run->live()) {
    static constexpr const char* kLinks[] = {"connecting", "catching up", "live", "connection lost", "ended"};
    const auto link = app.run->link();
    piece(kLinks[static_cast<int>(link)],
          link == collector::Viewer::Link::live ? c.of(Meaning::gather) : c.muted, "");
  } else {
    piece("recording", c.muted, "");
  }
  piece(count(static_cast<double>(app.store().event_count()), "events").text(), c.muted, "");
  piece(app.run->partial(), c.of(Meaning::reduce),
        "Summary, findings and times of steps are of these steps so far; the rest is being analysed");
  piece(details_from(app.store()), c.of(Meaning::trouble), eviction_text(app.store()));
  const std::uint64_t dropped = app.store().dropped_count();
  piece(grouped(static_cast<std::int64_t>(dropped)) + " dropped",
        dropped == 0 ? c.muted : c.of(Meaning::trouble),
        "Events that a rank's ring had no room for; they show as gaps in the lanes");
  if (const auto& ends = app.run->summary().unmatched_ends) {
    const std::string where = store::unmatched_ends_by_rank(*ends);
    std::uint64_t wrong = 0;
    for (const store::Store::UnmatchedEnds& row : *ends) wrong += row.count - row.explained;
    if (wrong > 0) {
      piece(store::unmatched_ends_text(wrong, 0), c.of(Meaning::trouble),
            where + "; nothing that is missing explains it, and what they ended is in no figure");
    }
  }
  const ClockBound bound = clock_bound(app);
  piece("clock ±" + duration(bound.in_view_ns).text(), c.muted,
        "Bound on the error of a rank's times in the range that the timeline shows: the largest of any rank. "
        "In "
        "the whole run: ±" +
            duration(bound.in_run_ns).text());
  piece(identify(app.store()).link, c.of(Meaning::reduce),
        "Collectives are held for as long as this link would take: times are emulated");
  what_was_done(app.store());
  piece(done_.newest, done_.lowered ? c.of(Meaning::trouble) : c.muted, done_.all);
  if (!app.run->control().note.empty()) piece(app.run->control().note, c.text, app.run->control().note);
}

void Workspace::keys(Context& ctx) {
  AppState& app = ctx.app;
  if (ctx.ui.overlay.open) return;
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyCtrl || io.KeyAlt) return;
  const std::int64_t limit = app.store().end_ns();
  const TimeRange range = app.time.range();
  const std::int64_t centre = range.begin_ns + range.length() / 2;
  const auto pressed = [&](int code) { return ctx.pressed(code); };
  const auto move = [&](double share) {
    app.time.pan(static_cast<std::int64_t>(static_cast<double>(range.length()) * share), limit);
    app.follow = false;
  };
  const auto zoom = [&](double factor) {
    app.time.zoom(factor, centre, limit);
    app.follow = false;
  };
  if (pressed('W')) zoom(0.75);
  if (pressed('S')) zoom(1 / 0.75);
  if (pressed('A')) move(-0.15);
  if (pressed('D')) move(0.15);
  if (pressed('F')) app.fit();
  if (pressed('L') && app.run->live()) {
    app.follow = !app.follow;
    if (app.follow) app.cursor_ns.reset();
  }
  if (pressed('T')) app.theme = app.theme == ThemeKind::dark ? ThemeKind::light : ThemeKind::dark;
  if (pressed('E')) app.step(StepUnit::event, Direction::forward);
  if (pressed('M')) app.step(StepUnit::module, Direction::forward);
  if (pressed('N')) app.step(StepUnit::step, Direction::forward);
  for (const int code : ctx.keys) {
    if (code == key::kRight) app.step(StepUnit::event, Direction::forward);
    if (code == key::kLeft) app.step(StepUnit::event, Direction::backward);
  }
  if (pressed(key::kSpace) && app.run->live()) {
    if (app.paused())
      app.resume();
    else
      app.pause();
  }
  for (std::size_t i = 0; i < layout_names().size(); ++i) {
    if (pressed('1' + static_cast<int>(i))) app.set_layout(layout_names()[i]);
  }
  if (pressed(key::kEscape)) {
    if (ctx.ui.help)
      ctx.ui.help = false;
    else if (app.selection.kind != SelectionKind::none)
      app.clear_selection();
    else
      app.cursor_ns.reset();
  }
}

}  // namespace shardscope::gui
