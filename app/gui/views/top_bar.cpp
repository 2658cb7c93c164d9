// The top bar: menus, identity of the run, figures of the current step, and execution
// controls.
#include <algorithm>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/step_of.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {

void Workspace::top_bar(Context& ctx, Rect rect) {
  const Palette& c = ctx.colors();
  AppState& app = ctx.app;
  ctx.canvas.horizontal(rect.x, rect.bottom() - 1, rect.w, c.line);
  Rect room = rect.inset(12, 8);
  placed_.push_back({"top", rect});
  const float menus_end = menu_bar(ctx);
  room.w = room.right() - menus_end - 12;
  room.x = menus_end + 12;
  ctx.ui.toolbar_of = "Top bar";
  controls(ctx, room);
  ctx.ui.toolbar_of = {};
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
                       measured == at ? "The step at the time shown"
                                      : "The last completed step; step " + std::to_string(steps[*at].step) +
                                            ", at the time shown, has not ended"});
    figures.push_back({"", duration(length), "Last end - first begin over ranks, pauses cut out"});
    if (done->tokens > 0 && length > 0) {
      figures.push_back(
          {"", count(static_cast<double>(done->tokens) * 1e9 / static_cast<double>(length), "tok/s"),
           "Tokens of all ranks / step time"});
    }
    figures.push_back({"loss", {decimal(done->loss, 3), ""}, "Mean over ranks and micro-steps"});
  }
  if (figures.empty()) return;
  ctx.canvas.vertical(room.x, room.y + 2, room.h - 4, c.line);
  room.take_left(12);
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
  if (ctx.button_right(room, "?", true, Context::Look::plain, "Keys and colours (F1 or ?)"))
    ctx.ui.help = !ctx.ui.help;
  if (ctx.button_right(room, is_dark(app.theme) ? "Light" : "Dark", true, Context::Look::plain,
                       "Theme (T)")) {
    app.theme = with_other_ground(app.theme);
  }
  Rect layout_place;
  if (ctx.menu_button_right(room, "Layout: " + app.layout_name, layout_place, true, "Layout (keys 1 to 9)")) {
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
                         "Resume the run (space)")) {
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

void Workspace::layout_menu(Context& ctx, const Rect& anchor) {
  AppState& app = ctx.app;
  std::vector<OverlayItem> items;
  int key = 1;
  for (const std::string& name : docks_.names()) {
    items.push_back({name, key <= 9 ? std::to_string(key) : "", true, name == app.layout_name,
                     [&app, name] { app.set_layout(name); }});
    ++key;
  }
  const std::string layout = app.layout_name;
  const std::vector<std::string>& shown = docks_.shown(layout);
  bool line = true;
  for (const auto& view : registry_.all()) {
    const std::string name(view->name());
    if (std::ranges::find(shown, name) != shown.end()) continue;
    items.push_back({"Add " + std::string(view->title()), "", true, false,
                     [&ui = ui_, name] { ui.show_panel = name; }, std::exchange(line, false)});
  }
  items.push_back({"Save as...", "", true, false, [&ui = ui_] { ui.open(Dialog::save_layout); }, true});
  items.push_back({"Reset layout", "", true, false, [this, layout] { docks_.reset(layout); }});
  ctx.menu(anchor, std::move(items));
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
  add("Start of next step", "N", StepUnit::step);
  ctx.menu(anchor, std::move(items));
}

}  // namespace shardscope::gui
