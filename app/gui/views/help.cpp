// Keys, and the meaning of every colour and mark: an ImGui window that can stay open.
#include <imgui.h>

#include <utility>

#include "app/gui/model/mark_words.h"
#include "app/gui/model/names.h"
#include "app/gui/views/commands.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/theme.h"
#include "app/gui/views/timeline_marks.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {
namespace {

struct KeyRow {
  const char* keys;
  const char* what;
};
constexpr KeyRow kPointer[] = {
    {"click", "select, and look at this time in every panel"},
    {"double click", "zoom to it"},
    {"drag", "pan; stops following a live run"},
    {"Shift+drag", "measure a range; also by dragging along the times"},
    {"middle drag", "zoom to a range; with Ctrl: zoom out, so that the view fits into it"},
    {"middle click", "fit the span"},
    {"right click", "menu of a span or a rank"},
    {"an end of a range", "drag it: of the step ruler, or of the measured range"},
    {"wheel", "zoom at the pointer (Ctrl: finer, Shift: faster, both: scroll)"},
    {"a rank's name", "drag: move the rank"},
    {"a title", "click: another panel there; drag: move it"},
};
constexpr KeyRow kKeyboard[] = {
    {"1 to 9", "layouts"},
    {"Alt", "the menus, then arrows and Enter"},
    {"F6, Shift+F6", "panels in turn; Tab and arrows move in them"},
    {"F4", "tool tip there; Ctrl+arrows move it, Esc closes"},
    {"Down", "into a list; Esc leaves it"},
};
struct Colour {
  Meaning meaning;
  const char* what;
};
constexpr Colour kColours[] = {
    {Meaning::compute, "computation, parameters"},
    {Meaning::gather, "all-gather, gathered parameters"},
    {Meaning::reduce, "reduction, gradients"},
    {Meaning::optimizer, "optimizer and its states"},
    {Meaning::activation, "activations"},
    {Meaning::copy, "copies, offload, swap"},
    {Meaning::buffer, "buffers"},
    {Meaning::trouble, "waiting (hatched), late, error"},
};
// Colours of words and marks.
constexpr std::pair<Rgb Palette::*, const char*> kWordColours[] = {
    {&Palette::warning, "warnings, incomplete"}, {&Palette::good, "better, live"}};
void key_rows(Context& ctx, const char* id, std::span<const KeyRow> list) {
  if (!ImGui::BeginTable(id, 2, ImGuiTableFlags_SizingFixedFit)) return;
  for (const KeyRow& row : list) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    {
      const FontScope mono(ctx.canvas.fonts(), Font::mono_small);
      ImGui::TextColored(ink(ctx.colors().accent), "%-14s", row.keys);
    }
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(row.what);
  }
  ImGui::EndTable();
}

void draw_mark(Context& ctx, Mark mark, const Rect& at) {
  const Palette& c = ctx.colors();
  Canvas& canvas = ctx.canvas;
  const Rgb gather = c.of(Meaning::gather);
  switch (mark) {
    case Mark::hatched_gather:
      canvas.fill(at, gather);
      canvas.fill({at.x, at.y, at.w * 0.6F, at.h}, c.panel, 0.6F);
      canvas.hatch({at.x, at.y, at.w * 0.6F, at.h}, gather, 0.7F, 5);
      return;
    case Mark::late:
      canvas.fill(at, gather);
      canvas.fill({at.x, at.y, 3, at.h}, c.of(Meaning::trouble));
      return;
    case Mark::tail:
      canvas.fill({at.x, at.y, at.w * 0.4F, at.h}, gather);
      canvas.fill({at.x + at.w * 0.4F, at.y + at.h / 2 - 1, at.w * 0.6F, 2}, c.muted);
      canvas.vertical(at.right() - 1, at.y + 3, at.h - 6, c.muted);
      return;
    case Mark::unused:
      canvas.fill(at, gather);
      canvas.outline(at, c.of(Meaning::trouble));
      return;
    case Mark::gap:
      canvas.hatch(at, c.muted, 0.6F, 8);
      return;
    case Mark::strip:
      canvas.fill({at.x, at.y, at.w, at.h - 8}, c.of(Meaning::compute), 0.9F);
      canvas.fill({at.x, at.bottom() - 7, at.w, 3}, gather);
      canvas.fill({at.x, at.bottom() - 3, at.w * 0.7F, 3}, c.of(Meaning::reduce));
      return;
    case Mark::flush:
    case Mark::flush_rest:
      canvas.fill(at, c.of(Meaning::reduce));
      draw_flush_mark(ctx, at.x + at.w / 2, at.y, mark == Mark::flush ? FlushShape::full : FlushShape::rest);
      return;
    case Mark::skipped:
      canvas.fill(at, c.of(Meaning::compute));
      canvas.hatch(at, c.of(Meaning::trouble), 1, 4);
      return;
  }
}

/// Draws a swatch at ImGui's cursor, and a text after it.
template <typename Draw>
void legend(Context& ctx, const char* what, Draw draw) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ctx.canvas.draw_on(ImGui::GetWindowDrawList());
  draw(Rect{at.x, at.y + 1, 30, 15});
  ImGui::Dummy({34, 16});
  ImGui::SameLine();
  ImGui::TextUnformatted(what);
}

}  // namespace

void draw_help(Context& ctx) {
  if (!ctx.ui.help) return;
  const float width = std::min(920.0F, ctx.window.w - 32);
  const float height = std::min(760.0F, ctx.window.h - 64);
  ImGui::SetNextWindowPos(
      {ctx.window.x + (ctx.window.w - width) / 2, ctx.window.y + (ctx.window.h - height) / 2},
      ImGuiCond_Appearing);
  ImGui::SetNextWindowSize({width, height}, ImGuiCond_Appearing);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {18, 14});
  const FontScope small(ctx.canvas.fonts(), Font::small);
  if (ImGui::Begin(
          "Keys and colours", &ctx.ui.help,
          ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoCollapse) &&
      ImGui::BeginTable("##columns", 2)) {
    ImGui::TableSetupColumn("##commands", ImGuiTableColumnFlags_WidthStretch, 1);
    ImGui::TableSetupColumn("##marks", ImGuiTableColumnFlags_WidthStretch, 1.35F);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    for (int menu = 1; menu < kMenuCount; ++menu) {
      ImGui::SeparatorText(name_of(static_cast<Menu>(menu)));
      std::vector<KeyRow> list;
      for (const Command& command : commands()) {
        if (command.menu == static_cast<Menu>(menu) && *command.keys != 0)
          list.push_back({command.keys, command.name});
      }
      key_rows(ctx, name_of(static_cast<Menu>(menu)), list);
    }
    ImGui::TableNextColumn();
    ImGui::SeparatorText("Pointer");
    key_rows(ctx, "pointer", kPointer);
    ImGui::SeparatorText("Keyboard");
    key_rows(ctx, "keyboard", kKeyboard);
    ImGui::SeparatorText("Colours");
    for (const Colour& colour : kColours) {
      legend(ctx, colour.what, [&](const Rect& at) {
        const bool trouble = colour.meaning == Meaning::trouble;
        ctx.canvas.fill(at, ctx.colors().of(colour.meaning), trouble ? 0.45F : 1.0F, 2);
        if (trouble) ctx.canvas.hatch(at, ctx.colors().of(colour.meaning), 1, 5);
      });
    }
    for (const auto& [color, what] : kWordColours)
      legend(ctx, what,
             [&, color = color](const Rect& at) { ctx.canvas.fill(at, ctx.colors().*color, 1, 2); });
    ImGui::SeparatorText("Marks on the timeline");
    for (const Mark mark : kMarks) {
      const std::string what = meaning_of(mark, words_of(ctx.app.store()));
      if (!what.empty()) legend(ctx, what.c_str(), [&](const Rect& at) { draw_mark(ctx, mark, at); });
    }
    ImGui::EndTable();
  }
  ImGui::End();
  ImGui::PopStyleVar();
}

}  // namespace shardscope::gui
