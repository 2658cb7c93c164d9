// The palette: search for commands, panels, layouts and names of the run.
#include <algorithm>
#include <string>

#include "app/gui/views/dialogs.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/palette_entries.h"

namespace shardscope::gui {
void Dialogs::palette(Context& ctx, const Parts& parts) {
  AppState& app = ctx.app;
  if (ctx.ui.dialog_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  // With a history callback the field receives the up and down arrows, which would else move to the list.
  const bool entered = text_field("##palette", "a command, step, rank, module, parameter, finding...", text_,
                                  ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackHistory);
  if (text_ != searched_) {
    searched_ = text_;
    names_ = find_names(app, text_, 12);
    chosen_ = 0;
  }
  std::vector<PaletteEntry> entries = palette_entries(ctx, parts.views, parts.docks, parts.recent, text_);
  for (const NameHit& hit : names_) {
    entries.push_back({hit.text, word(hit.kind), hit.detail, [&ctx, hit] {
                         go_to_name(ctx.app, hit);
                         if (hit.kind == NameKind::finding) ctx.ui.show_panel = "findings";
                       }});
  }
  const int count = static_cast<int>(entries.size());
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_;
  const bool moved = ImGui::IsKeyPressed(ImGuiKey_DownArrow) || ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  chosen_ = std::clamp(chosen_, 0, std::max(0, count - 1));
  int picked = entered && count > 0 ? chosen_ : -1;
  // Shortcuts and kinds at the right are complete if half of the width suffices; a truncated row has a
  // tooltip.
  float hints = 1;
  for (const PaletteEntry& entry : entries)
    hints = std::max(hints, ImGui::CalcTextSize(entry.hint.c_str()).x);
  hints = std::min(hints, ImGui::GetContentRegionAvail().x * 0.5F);
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp;
  if (count == 0) ImGui::TextDisabled("No command or name contains this.");
  constexpr float kMostHeight = 380;
  const float row = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
  const float height = std::min(kMostHeight, row * static_cast<float>(count) + 2);
  if (count > 0 && ImGui::BeginTable("##entries", 3, kFlags, {0, height})) {
    ImGui::TableSetupColumn("##kind", ImGuiTableColumnFlags_WidthFixed, 84);
    ImGui::TableSetupColumn("##name", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("##hint", ImGuiTableColumnFlags_WidthFixed, hints);
    for (int i = 0; i < count; ++i) {
      const PaletteEntry& entry = entries[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::PushID(i);
      if (ImGui::Selectable("##row", i == chosen_, ImGuiSelectableFlags_SpanAllColumns)) picked = i;
      if (i == chosen_ && moved) ImGui::SetScrollHereY();
      const bool over = ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip);
      ImGui::SameLine(0, 0);
      ImGui::TextDisabled("%s", entry.kind.c_str());
      ImGui::TableNextColumn();
      bool cut = ImGui::CalcTextSize(entry.text.c_str()).x > ImGui::GetContentRegionAvail().x;
      cut_line(ctx.canvas, entry.text, ctx.colors().text);
      ImGui::TableNextColumn();
      cut = cut || ImGui::CalcTextSize(entry.hint.c_str()).x > ImGui::GetContentRegionAvail().x;
      cut_line(ctx.canvas, entry.hint, ctx.colors().muted);
      if (over && cut)
        padded_tip("%s%s%s", entry.text.c_str(), entry.hint.empty() ? "" : "\n", entry.hint.c_str());
      ImGui::PopID();
    }
    ImGui::EndTable();
  }
  if (picked < 0) return;
  close(ctx);
  entries[static_cast<std::size_t>(picked)].act();  // may open another dialog
}

}  // namespace shardscope::gui
