// Panels as ImGui windows: title, its menu, and the mark of partial
// figures.
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/gui/model/history_text.h"
#include "app/gui/model/labelled_run.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {
namespace {

constexpr float kPanelTitle = 30;

}  // namespace

void Workspace::panels(Context& ctx) {
  // A copy, since a panel may be closed while drawing.
  const std::vector<std::string> shown = docks_.shown(ctx.app.layout_name);
  for (const std::string& name : shown) {
    const FrameTimes::Part part(ctx.ui.times, name);
    panel_window(ctx, name);
  }
}

void Workspace::show_requested_panel(Context& ctx) {
  const std::string layout = ctx.app.layout_name;
  if (std::exchange(ctx.ui.reset_layout, false)) docks_.reset(layout);
  const bool selected = ctx.app.selection.kind != SelectionKind::none;
  // The Inspector is empty without a selection: it opens with the first one.
  const bool with_overview = layout == "Watch" || layout == "Memory";
  if (selected && with_overview && inspector_offered_.insert(layout).second) {  // only once: it may be closed
    docks_.open(layout, "inspector", "overview");
    show_in_front("inspector");
  }
  put_away_inspector(layout, selected);
  if (const int by = std::exchange(ctx.ui.next_panel, 0); by != 0) focus_beside(layout, by);
  if (const auto move = std::exchange(ctx.ui.panel_move, std::nullopt)) move_panel(ctx, layout, *move);
  const std::string name = std::exchange(ctx.ui.show_panel, {});
  if (name.empty() || registry_.find(name) == nullptr) return;
  static constexpr std::array<std::pair<const char*, const char*>, 9> kBeside{{{"inspector", "overview"},
                                                                               {"findings", "inspector"},
                                                                               {"find", "partition"},
                                                                               {"notes", "memory"},
                                                                               {"flame", "memory"},
                                                                               {"statistics", "memory"},
                                                                               {"trace_info", "memory"},
                                                                               {"connection", "memory"},
                                                                               {"options", "inspector"}}};
  const auto beside =
      std::ranges::find(kBeside, name, [](const auto& pair) { return std::string(pair.first); });
  docks_.open(layout, name, beside == kBeside.end() ? "" : beside->second);
  focus_panel_ = name;
}

/// Moves the keyboard to the next or previous panel, in the order they were opened; the bars and the step
/// ruler are the first.
void Workspace::focus_beside(const std::string& layout, int by) {
  const std::vector<std::string>& shown = docks_.shown(layout);
  const auto count = std::ssize(shown) + 1;
  const auto found = std::ranges::find(shown, focused_panel_);
  const auto at = ui_.host_chosen || found == shown.end() ? 0 : found - shown.begin() + 1;
  const auto to = (at + by + count) % count;
  ui_.host_chosen = to == 0;
  ImGui::SetNavCursorVisible(true);
  if (to == 0)
    ImGui::SetWindowFocus(kHostWindow);
  else
    focus_panel_ = shown[static_cast<std::size_t>(to - 1)];
}

/// Moves the panel that has the keyboard, or had it last.
void Workspace::move_panel(Context& ctx, const std::string& layout, PanelMove move) {
  const std::vector<std::string>& shown = docks_.shown(layout);
  if (std::ranges::find(shown, focused_panel_) == shown.end()) {
    ctx.ui.say("Choose a panel first: F6, or a click in it");
    return;
  }
  const std::string stays = docks_.move(layout, focused_panel_, move);
  if (!stays.empty()) ctx.ui.say(stays);
  focus_panel_ = focused_panel_;
  ui_.host_chosen = false;
  ctx.moving = true;  // ImGui docks at the begin of the next frame
}

/// If the Inspector and the Overview are tabs of one place, the Overview is in front without a selection,
/// also when the window opens; the next selection brings the Inspector back. A panel that the user has put in
/// front stays.
void Workspace::put_away_inspector(const std::string& layout, bool selected) {
  InspectorPlace& place = inspector_places_[layout];
  const bool begins = !place.selected;
  if (place.selected == selected) return;
  place.selected = selected;
  if (!docks_.share_a_place(layout, "inspector", "overview")) return;
  if (selected) {
    if (std::exchange(place.put_away, false)) show_in_front("inspector");
  } else if (begins || docks_.in_front(layout, "inspector")) {
    place.put_away = true;
    show_in_front("overview");
  }
}

/// Who walks over spans or parameters with the arrow keys goes on with that.
void Workspace::show_in_front(const std::string& name) {
  focus_panel_ = name;
  if (walks_) focus_again_ = focused_panel_;
}

void Workspace::panel_window(Context& ctx, const std::string& name) {
  View* const view = registry_.find(name);
  if (view == nullptr) return;  // in settings of another version
  const std::string layout = ctx.app.layout_name;
  bool open = true;
  if (focus_panel_ == name) ImGui::SetNextWindowFocus();
  ImGui::SetNextWindowSize({640, 360}, ImGuiCond_FirstUseEver);
  const bool drawn =
      ImGui::Begin(Docks::window_name(layout, name, view->title()).c_str(), &open,
                   ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoScrollbar |
                       ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoFocusOnAppearing);
  if (drawn) {
    ImGuiWindow* const window = ImGui::GetCurrentWindow();
    if (focus_panel_ == name) {
      focus_panel_ = std::exchange(focus_again_, {});
      // Its first item, or ImGui would not move from none to the next at Tab.
      const bool first = window == ImGui::GetCurrentContext()->NavWindow && window->NavLastIds[0] == 0;
      if (first) ImGui::NavInitWindow(window, false);
    }
    ctx.enter_window();
    const ImGuiDockNode* const node = window->DockNode;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 size = ImGui::GetContentRegionAvail();
    const Rect room{at.x, at.y, size.x, size.y};
    const std::vector<Choice> choices = view->choices(ctx.app);
    std::vector<std::string> shows;
    for (const Choice& choice : choices)
      shows.push_back(choice.labels[static_cast<std::size_t>(choice.chosen)]);
    const bool focused =
        ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows | ImGuiFocusedFlags_NoPopupHierarchy);
    if (focused) {
      focused_panel_ = name;
      ui_.host_chosen = false;
    }
    placed_.push_back(
        {name, room, std::move(shows), ImGui::GetWindowViewport() != ImGui::GetMainViewport(), focused});
    // Alone in a docked place it has neither a tab nor a title bar as a floating window has: its title line
    // serves as the drag handle.
    const bool alone = node != nullptr && node->IsHiddenTabBar() &&
                       ImGui::DockNodeGetRootNode(window->DockNode)->IsDockSpace();
    const Rect title = panel(ctx, *view, choices, room, alone);
    if (ctx.key_item(title, "title").chosen) panel_menu(ctx, *view, title);
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

Rect Workspace::panel(Context& ctx, View& view, const std::vector<Choice>& choices, Rect room, bool named) {
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
  if (view.runs() == RunsOf::shown) run_mark(ctx, tools);
  if (view.analysed()) partial_mark(ctx, tools);
  if (tools.w > 40) {
    ctx.ui.toolbar_of = view.title();
    view.header(ctx, tools);
    ctx.ui.toolbar_of = {};
    draw_choices(ctx, choices, tools);
  }
  ctx.ui.panel_of = view.title();
  view.draw(ctx, room);
  ctx.ui.panel_of = {};
  return name;
}

void Workspace::run_mark(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  if (app.other == nullptr) return;
  const char* const letter = app.letter_of(*app.run);
  constexpr float kMark = 16;
  const float width = kMark + ctx.canvas.width(letter, Font::strong) + 8;
  if (room.w < width) return;
  const Rect place = room.take_left(width);
  room.take_left(8);
  const bool over = ctx.hovered(place);
  ctx.canvas.fill({place.x + 4, place.y + (place.h - 10) / 2, 10, 10}, ctx.colors().runs[index_of(letter)], 1,
                  2);
  ctx.canvas.text_in({place.x + kMark + 2, place.y, place.w - kMark, place.h}, letter,
                     over ? ctx.colors().accent : ctx.colors().text, Font::strong);
  if (over)
    ctx.tip(std::string("Run ") + letter + ", " + app.run->source() + "\nClick or X: " +
            app.letter_of(*app.other) + ", " + app.other->source() + ", at the same place in all panels");
  if (ctx.activated(place, "run")) app.show_other_run();
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
                   [this, layout, here] { docks_.close(layout, here); }, true});
  ctx.menu(title, std::move(items));
}

void Workspace::partial_mark(Context& ctx, Rect& room) {
  std::string mark = ctx.app.run->partial();
  if (mark.empty() && ctx.app.other) mark = ctx.app.other->partial();
  const bool all_that_is_kept = mark.empty();
  if (all_that_is_kept) mark = steps_kept(*ctx.app.run);
  if (mark.empty()) return;
  const Rect place = room.take_left(std::min(room.w, ctx.canvas.width(mark, Font::small) + 1));
  const bool cut = ctx.canvas.text_in(place, mark, ctx.colors().warning, Font::small);
  room.take_left(12);
  if (ctx.hovered(place))
    ctx.tip((cut ? mark + ". " : std::string()) +
            (all_that_is_kept ? "Figures and findings cover these steps. " + eviction_text(ctx.app.store())
                              : "Figures and findings cover these steps so far; the rest is being analysed"));
}

}  // namespace shardscope::gui
