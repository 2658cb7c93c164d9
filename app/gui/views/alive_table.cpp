#include "app/gui/views/alive_table.h"

#include <imgui.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/memory_legend.h"

namespace shardscope::gui {
namespace {

constexpr float kAliveRow = 20;

std::string change_text(std::int64_t change) {
  return (change > 0 ? "+" : change < 0 ? "-" : "") + bytes(std::abs(change)).text();
}

Rect cell_here() {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  return {at.x, at.y, ImGui::GetContentRegionAvail().x, kAliveRow};
}

/// Column headers, right-aligned above numbers.
void heads(Context& ctx, std::span<const char* const> names) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers, kAliveRow);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
    const Rect room = cell_here();
    ImGui::TableHeader((std::string("##") + names[i]).c_str());
    const bool number = i > 0 && i + 1 < names.size();
    ctx.canvas.text_in(room, names[i], ctx.colors().muted, Font::small, number ? Align::right : Align::left);
  }
}

}  // namespace

void AliveTable::rows(Context& ctx, const std::vector<AliveNode>& nodes, Columns columns, std::int64_t whole,
                      int depth) {
  const Palette& c = ctx.colors();
  const bool difference = columns == Columns::difference;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const AliveNode& node = nodes[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::TableNextRow(ImGuiTableRowFlags_None, kAliveRow);
    ImGui::TableSetColumnIndex(0);
    const Rect name = cell_here();
    ImGuiTreeNodeFlags flags = ImGuiTreeNodeFlags_SpanAllColumns | ImGuiTreeNodeFlags_OpenOnArrow |
                               ImGuiTreeNodeFlags_FramePadding | ImGuiTreeNodeFlags_OpenOnDoubleClick;
    if (node.children.empty()) flags |= ImGuiTreeNodeFlags_Leaf | ImGuiTreeNodeFlags_Bullet;
    // Open the largest category initially, to show what fills memory.
    if (depth == 0 && i == 0) ImGui::SetNextItemOpen(true, ImGuiCond_FirstUseEver);
    if (std::exchange(enter_, false)) ImGui::SetKeyboardFocusHere();
    const bool open = ImGui::TreeNodeEx("##node", flags);
    const bool over = ImGui::IsItemHovered();
    const bool entered = ImGui::IsItemFocused() && ImGui::IsKeyPressed(ImGuiKey_Enter, false);
    if ((ImGui::IsItemClicked() && !ImGui::IsItemToggledOpen()) || entered) chosen_ = &node;
    Rect label{name.x + ImGui::GetTreeNodeToLabelSpacing(), name.y,
               name.w - ImGui::GetTreeNodeToLabelSpacing(), kAliveRow};
    if (depth == 0) {
      const Rect mark = label.take_left(16);
      ctx.canvas.fill({mark.x, mark.y + 5, 10, 10}, shade(c, node.category), 1, 2);
    }
    const bool cut = ctx.canvas.text_in(label, node.label, c.text, Font::small);
    if (over && cut) ctx.tip(node.label);
    int column = 1;
    const auto number = [&](const std::string& text, Rgb color) {
      if (ImGui::TableSetColumnIndex(column++))
        ctx.canvas.text_in(cell_here(), text, color, Font::mono_small, Align::right);
    };
    if (difference) {
      number(bytes(node.before).text(), c.muted);
      number(bytes(node.bytes).text(), c.text);
      const std::int64_t change = node.bytes - node.before;
      number(change_text(change), change > 0 ? c.warning : c.good);
    } else {
      number(bytes(node.bytes).text(), c.text);
      number(whole > 0 ? decimal(100 * static_cast<double>(node.bytes) / static_cast<double>(whole), 1) + " %"
                       : "",
             c.muted);
      number(node.since_ns ? timestamp(*node.since_ns, 10'000) : "begin", c.muted);
    }
    if (ImGui::TableSetColumnIndex(column)) {
      const Rect cell = cell_here();
      const bool long_text = ctx.canvas.text_in(cell, node.why, mix(c.muted, c.text, 0.5F), Font::small);
      if (over && long_text && cell.contains(ctx.pointer.x, ctx.pointer.y)) ctx.tip(node.why);
    }
    if (open) {
      rows(ctx, node.children, columns, whole, depth + 1);
      ImGui::TreePop();
    }
    ImGui::PopID();
  }
}

const AliveNode* AliveTable::draw(Context& ctx, const char* id, const Rect& room,
                                  const std::vector<AliveNode>& nodes, Columns columns) {
  chosen_ = nullptr;
  if (room.w < 80 || room.h < 40) return chosen_;
  const bool difference = columns == Columns::difference;
  const char* const table = difference ? "##alive difference" : id;
  ImDrawList* const outside = ctx.canvas.list();
  const bool was_over = ctx.over_window;
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {6, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {2, 3});
  ImGui::SetCursorScreenPos({room.x, room.y});
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_Resizable | ImGuiTableFlags_Hideable |
                                     ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                     ImGuiTableFlags_SizingStretchProp;
  enter_ = arrow_enters(table);
  if (ImGui::BeginTable(table, 5, kFlags, {room.w, room.h})) {
    ctx.enter_window();
    constexpr std::array kAlive{"owner", "bytes", "share", "since", "why"};
    constexpr std::array kDifference{"owner", "then", "now", "change", "why"};
    constexpr std::array kWeights{2.0F, 0.8F, 0.8F, 0.8F, 2.0F};
    const auto& names = difference ? kDifference : kAlive;
    for (std::size_t i = 0; i < names.size(); ++i)
      ImGui::TableSetupColumn(names[i], i == 0 ? ImGuiTableColumnFlags_NoHide : 0, kWeights[i]);
    ImGui::TableSetupScrollFreeze(0, 1);
    heads(ctx, names);
    std::int64_t whole = 0;
    for (const AliveNode& node : nodes) whole += node.bytes;
    rows(ctx, nodes, columns, whole, 0);
    ImGui::EndTable();
  }
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
  ctx.canvas.draw_on(outside);
  ctx.over_window = was_over;
  return chosen_;
}

}  // namespace shardscope::gui
