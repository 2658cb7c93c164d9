#include "app/gui/views/theme.h"

#include <imgui.h>

namespace shardscope::gui {
namespace {

ImVec4 ink(Rgb color, float alpha = 1) {
  const auto part = [&](unsigned shift) { return static_cast<float>(color >> shift & 255U) / 255.0F; };
  return {part(16), part(8), part(0), alpha};
}

}  // namespace

void apply_theme(const Palette& c) {
  ImGuiStyle& style = ImGui::GetStyle();
  style.WindowPadding = {0, 0};
  style.WindowRounding = 0;
  style.WindowBorderSize = 1;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.WindowMinSize = {160, 96};
  style.FramePadding = {8, 5};
  style.FrameRounding = style.PopupRounding = style.GrabRounding = style.TabRounding = 3;
  style.DockingSeparatorSize = 1;
  style.TabBarOverlineSize = 2;
  const auto set = [&](ImGuiCol which, Rgb color, float alpha = 1) {
    style.Colors[which] = ink(color, alpha);
  };
  set(ImGuiCol_Text, c.text);
  set(ImGuiCol_TextDisabled, c.muted);
  set(ImGuiCol_WindowBg, c.panel);
  set(ImGuiCol_ChildBg, c.panel, 0);
  set(ImGuiCol_PopupBg, c.raised);
  set(ImGuiCol_Border, mix(c.line, c.muted, 0.2F));
  set(ImGuiCol_DockingEmptyBg, c.base);
  set(ImGuiCol_DockingPreview, c.accent, 0.45F);
  for (const ImGuiCol title : {ImGuiCol_TitleBg, ImGuiCol_TitleBgActive, ImGuiCol_TitleBgCollapsed})
    set(title, c.base);
  for (const ImGuiCol tab : {ImGuiCol_Tab, ImGuiCol_TabDimmed}) set(tab, c.base);
  for (const ImGuiCol tab : {ImGuiCol_TabSelected, ImGuiCol_TabDimmedSelected}) set(tab, c.panel);
  set(ImGuiCol_TabHovered, mix(c.panel, c.accent, 0.28F));
  set(ImGuiCol_TabSelectedOverline, c.accent);
  set(ImGuiCol_TabDimmedSelectedOverline, c.line);
  for (const ImGuiCol line : {ImGuiCol_Separator, ImGuiCol_ResizeGrip}) set(line, c.line);
  for (const ImGuiCol hot : {ImGuiCol_SeparatorHovered, ImGuiCol_SeparatorActive, ImGuiCol_ResizeGripHovered,
                             ImGuiCol_ResizeGripActive, ImGuiCol_NavCursor})
    set(hot, c.accent);
  set(ImGuiCol_Button, c.raised);
  set(ImGuiCol_ButtonHovered, mix(c.raised, c.text, 0.12F));
  set(ImGuiCol_ButtonActive, mix(c.raised, c.text, 0.2F));
}

}  // namespace shardscope::gui
