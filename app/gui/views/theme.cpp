#include "app/gui/views/theme.h"

#include <implot.h>

namespace shardscope::gui {
ImVec4 ink(Rgb color, float alpha) {
  const auto part = [&](unsigned shift) { return static_cast<float>(color >> shift & 255U) / 255.0F; };
  return {part(16), part(8), part(0), alpha};
}

namespace {

/// Plots have no frame; text and ticks are muted, as on the timeline.
void theme_plots(const Palette& c) {
  if (ImPlot::GetCurrentContext() == nullptr) return;
  ImPlotStyle& style = ImPlot::GetStyle();
  style.PlotPadding = {0, 4};
  style.PlotMinSize = {40, 30};
  style.FitPadding = {0, 0.06F};  // above the highest bar of a distribution
  style.PlotBorderSize = 0;
  style.LabelPadding = {6, 4};
  style.LegendPadding = {6, 4};
  style.LegendInnerPadding = {6, 3};
  style.LegendSpacing = {12, 2};
  style.MajorTickLen = style.MinorTickLen = {0, 0};
  style.MinorAlpha = 0;
  const auto set = [&](ImPlotCol which, Rgb color, float alpha = 1) {
    style.Colors[which] = ink(color, alpha);
  };
  set(ImPlotCol_FrameBg, c.panel, 0);
  set(ImPlotCol_PlotBg, c.panel, 0);
  set(ImPlotCol_PlotBorder, c.line);
  set(ImPlotCol_LegendBg, c.raised, 0.85F);
  set(ImPlotCol_LegendBorder, c.line, 0);
  set(ImPlotCol_LegendText, c.text);
  set(ImPlotCol_InlayText, c.text);
  set(ImPlotCol_AxisText, c.muted);
  set(ImPlotCol_AxisGrid, c.line);
  set(ImPlotCol_AxisBg, c.panel, 0);
  set(ImPlotCol_AxisBgHovered, c.raised, 0.6F);
  set(ImPlotCol_AxisBgActive, c.raised);
  set(ImPlotCol_Selection, c.accent);
  set(ImPlotCol_Crosshairs, c.muted);
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
  style.CellPadding = {6, 3};
  style.ItemSpacing = {8, 6};
  style.ScrollbarSize = 10;
  style.FrameBorderSize = 1;  // makes fields and check boxes visible on a similar background
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
  // Tables, headers and selected rows; input fields, sliders and check marks.
  set(ImGuiCol_TableHeaderBg, c.panel);
  set(ImGuiCol_TableRowBg, c.panel, 0);
  set(ImGuiCol_TableRowBgAlt, c.text, 0.03F);
  for (const ImGuiCol line : {ImGuiCol_TableBorderStrong, ImGuiCol_TableBorderLight}) set(line, c.line);
  set(ImGuiCol_Header, mix(c.panel, c.accent, 0.28F));
  set(ImGuiCol_HeaderHovered, mix(c.panel, c.accent, 0.20F));
  set(ImGuiCol_HeaderActive, mix(c.panel, c.accent, 0.38F));
  set(ImGuiCol_FrameBg, c.base);
  set(ImGuiCol_FrameBgHovered, mix(c.base, c.text, 0.08F));
  set(ImGuiCol_FrameBgActive, mix(c.base, c.text, 0.12F));
  for (const ImGuiCol mark : {ImGuiCol_CheckMark, ImGuiCol_PlotHistogram}) set(mark, c.accent);
  // The value is drawn over the slider.
  set(ImGuiCol_SliderGrab, mix(c.base, c.accent, 0.55F));
  set(ImGuiCol_SliderGrabActive, mix(c.base, c.accent, 0.7F));
  set(ImGuiCol_TextSelectedBg, c.accent, 0.35F);
  set(ImGuiCol_ScrollbarBg, c.panel, 0);
  set(ImGuiCol_ScrollbarGrab, c.muted, 0.45F);
  for (const ImGuiCol grab : {ImGuiCol_ScrollbarGrabHovered, ImGuiCol_ScrollbarGrabActive})
    set(grab, c.muted, 0.8F);
  set(ImGuiCol_ModalWindowDimBg, c.base, 0.55F);
  set(ImGuiCol_NavWindowingHighlight, c.accent);
  set(ImGuiCol_NavWindowingDimBg, c.base, 0.4F);
  set(ImGuiCol_Button, c.raised);
  set(ImGuiCol_ButtonHovered, mix(c.raised, c.text, 0.12F));
  set(ImGuiCol_ButtonActive, mix(c.raised, c.text, 0.2F));
  theme_plots(c);
}

}  // namespace shardscope::gui
