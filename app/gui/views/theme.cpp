#include "app/gui/views/theme.h"

#include <imgui.h>
#include <implot.h>

#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {
void apply_theme(const Palette& c) {
  ImGuiStyle& style = ImGui::GetStyle();
  style.WindowPadding = {0, 0};
  style.WindowRounding = 0;
  style.WindowBorderSize = 1;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.WindowMinSize = {160, 96};
  style.FramePadding = {8, 5};
  style.FrameRounding = style.PopupRounding = style.GrabRounding = style.TabRounding = 3;
  style.CellPadding = {6, 3};
  style.ItemSpacing = {8, 6};
  style.ScrollbarSize = 10;
  style.FrameBorderSize = 0;
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
  set(ImGuiCol_MenuBarBg, c.panel);
  set(ImGuiCol_FrameBg, c.base);
  set(ImGuiCol_FrameBgHovered, mix(c.base, c.text, 0.08F));
  set(ImGuiCol_FrameBgActive, mix(c.base, c.accent, 0.12F));
  for (const ImGuiCol row : {ImGuiCol_Header, ImGuiCol_TextSelectedBg})
    set(row, mix(c.panel, c.accent, 0.28F));
  set(ImGuiCol_HeaderHovered, mix(c.panel, c.accent, 0.20F));
  set(ImGuiCol_HeaderActive, mix(c.panel, c.accent, 0.38F));
  set(ImGuiCol_TableHeaderBg, c.raised);
  set(ImGuiCol_TableBorderLight, c.line);
  set(ImGuiCol_TableBorderStrong, c.line);
  set(ImGuiCol_TableRowBg, c.panel, 0);
  set(ImGuiCol_TableRowBgAlt, c.text, 0.03F);
  set(ImGuiCol_ScrollbarBg, c.panel, 0);
  set(ImGuiCol_ScrollbarGrab, c.muted, 0.45F);
  set(ImGuiCol_ScrollbarGrabHovered, c.muted, 0.7F);
  set(ImGuiCol_ScrollbarGrabActive, c.muted, 0.9F);
  set(ImGuiCol_CheckMark, c.accent);
  set(ImGuiCol_SliderGrab, c.accent);
  set(ImGuiCol_SliderGrabActive, c.accent);
  set(ImGuiCol_PlotHistogram, c.accent);
  set(ImGuiCol_ModalWindowDimBg, c.base, 0.55F);
  set(ImGuiCol_NavWindowingHighlight, c.accent);
  set(ImGuiCol_NavWindowingDimBg, c.base, 0.4F);
  set(ImGuiCol_Button, c.raised);
  set(ImGuiCol_ButtonHovered, mix(c.raised, c.text, 0.12F));
  set(ImGuiCol_ButtonActive, mix(c.raised, c.text, 0.2F));
  ImPlotStyle& plots = ImPlot::GetStyle();
  plots.Colors[ImPlotCol_FrameBg] = ink(c.panel, 0);
  plots.Colors[ImPlotCol_PlotBg] = ink(c.panel, 0);
  plots.Colors[ImPlotCol_PlotBorder] = ink(c.line);
  plots.Colors[ImPlotCol_AxisText] = ink(c.muted);
  plots.Colors[ImPlotCol_AxisGrid] = ink(c.line);
  plots.PlotPadding = {4, 4};
  plots.LabelPadding = {4, 3};
}

}  // namespace shardscope::gui
