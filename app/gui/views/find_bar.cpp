#include "app/gui/views/find_bar.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/finder.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/statistics_pane.h"

namespace shardscope::gui {
namespace {

constexpr float kLine = 30;

const char* scope_name(FindScope scope) {
  switch (scope) {
    case FindScope::run:
      return "whole run";
    case FindScope::shown:
      return "range shown";
    case FindScope::measured:
      return "measured range";
  }
  return "";
}

/// Choice of the searched range, and a button to use the visible one.
void scope_choice(Context& ctx, Rect& line) {
  AppState& app = ctx.app;
  Finder& find = app.find;
  const Rect place = line.take_left(std::min(132.0F, line.w));
  ImGui::SetCursorScreenPos({place.x, place.y + 4});
  ImGui::SetNextItemWidth(place.w);
  if (ImGui::BeginCombo("##scope", scope_name(find.scope))) {
    for (const FindScope scope : {FindScope::run, FindScope::shown, FindScope::measured}) {
      ImGui::BeginDisabled(scope == FindScope::measured && !app.measured);
      if (ImGui::Selectable(scope_name(scope), scope == find.scope)) {
        find.scope = scope;
        find.range = app.time.range();
      }
      ImGui::EndDisabled();
    }
    ImGui::EndCombo();
  }
  if (find.scope == FindScope::measured && !app.measured) find.scope = FindScope::run;
  line.take_left(8);
  if (find.scope != FindScope::shown || find.range == app.time.range() || line.w < 120) return;
  const Rect now = line.take_left(ctx.button_width("Use shown range"));
  if (ctx.button({now.x, now.y + 4, now.w, 22}, "Use shown range", true, Context::Look::plain,
                 "The timeline has moved since: search the range that it shows now"))
    find.range = app.time.range();
  line.take_left(8);
}

void progress(Context& ctx, const Rect& line) {
  AppState& app = ctx.app;
  const bool grown = app.find.search.done() && app.run->live() && app.find.scope == FindScope::run &&
                     app.store().end_ns() > app.find.search.until_ns();
  Rect room = line;
  if (grown && room.w > 180) {
    const Rect again = room.take_right(ctx.button_width("Search again"));
    if (ctx.button({again.x, again.y + 4, again.w, 22}, "Search again", true, Context::Look::plain,
                   "The run has new events since"))
      app.find.again = true;
    room.take_right(8);
  }
  const std::string text = progress_text(app.find);
  if (ctx.canvas.text_in(room, text, ctx.colors().muted, Font::small, Align::right) && ctx.hovered(room))
    ctx.tip(text);
}

}  // namespace

void find_buttons(Context& ctx, Rect& room) {
  AppState& app = ctx.app;
  const bool any = app.find.search.hits() > 0;
  if (ctx.button_right(room, "Next", any, Context::Look::plain, "The next hit in time (F3)"))
    go_to_next_hit(app, Toward::later);
  if (ctx.button_right(room, "Previous", any, Context::Look::plain, "The hit before (Shift+F3)"))
    go_to_next_hit(app, Toward::earlier);
  if (ctx.button_right(room, "Selection", app.selection.kind != SelectionKind::none, Context::Look::plain,
                       "Find all like what is selected (Ctrl+Shift+F)"))
    find_selection(app);
}

bool find_line(Context& ctx, Rect& room, int& moved) {
  Finder& find = ctx.app.find;
  find.wanted_next = true;
  Rect line = room.take_top(kLine);
  const FontScope small(ctx.canvas.fonts(), Font::small);
  const Rect field = line.take_left(std::clamp(line.w * 0.42F, 120.0F, 340.0F));
  ImGui::SetCursorScreenPos({field.x, field.y + 4});
  ImGui::SetNextItemWidth(field.w);
  if (std::exchange(find.focus, false)) ImGui::SetKeyboardFocusHere();
  // With a history callback the field receives the up and down arrows.
  const bool entered = text_field("##words", "attn forward, gather h.3, step 7, \"whole name\"", find.words,
                                  ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackHistory |
                                      ImGuiInputTextFlags_AutoSelectAll);
  if (ImGui::IsItemActive())
    moved = int{ImGui::IsKeyPressed(ImGuiKey_DownArrow)} - int{ImGui::IsKeyPressed(ImGuiKey_UpArrow)};
  line.take_left(8);
  scope_choice(ctx, line);
  progress(ctx, line);
  return entered;
}

void find_scope(Context& ctx, Rect& room) {
  Rect line = room.take_top(kLine);
  const FontScope small(ctx.canvas.fonts(), Font::small);
  scope_choice(ctx, line);
  const std::string& words = ctx.app.find.words;
  const std::string of = words.empty() ? "all spans" : words;
  const Rect place = line.take_left(std::min(line.w * 0.5F, ctx.canvas.width(of, Font::small) + 12));
  if (ctx.canvas.text_in(place, of, ctx.colors().text, Font::small) && ctx.hovered(place)) ctx.tip(of);
  progress(ctx, line);
}

void find_filter(Context& ctx, Rect& room) {
  Finder& find = ctx.app.find;
  if (find.filter.empty()) return;
  Rect line = room.take_top(26);
  const float label = ctx.canvas.width("only", Font::small) + 8;
  ctx.canvas.text_in(line.take_left(label), "only", ctx.colors().muted, Font::small);
  for (FilterPart& part : filter_parts(ctx.app)) {
    const std::string text = part.text + "  \u00d7";
    const float width = ctx.button_width(text);
    if (line.w < std::min(width, 80.0F)) break;
    const Rect place = line.take_left(std::min(width, line.w));
    if (ctx.button({place.x, place.y + 2, place.w, 22}, text, true, Context::Look::chosen,
                   part.text + ". Click to remove this filter"))
      find.filter = part.without;
    line.take_left(6);
  }
}

}  // namespace shardscope::gui
