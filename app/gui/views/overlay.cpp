// Menus and lists opened by a button or title: ImGui popups.
#include <algorithm>

#include "app/gui/model/match.h"
#include "app/gui/views/context.h"
#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {
namespace {

constexpr const char* kPopup = "##menu";
constexpr int kMostRows = 14;
constexpr float kWidest = 480;

/// Returns the index of the chosen item, or -1.
int menu_items(const Overlay& overlay) {
  int picked = -1;
  for (std::size_t i = 0; i < overlay.items.size(); ++i) {
    const OverlayItem& item = overlay.items[i];
    if (item.line_before) ImGui::Separator();
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::MenuItem(item.label.c_str(), item.hint.empty() ? nullptr : item.hint.c_str(), item.checked,
                        item.enabled))
      picked = static_cast<int>(i);
    ImGui::PopID();
  }
  return picked;
}

int list_to_pick_from(Overlay& overlay, const Fonts& fonts) {
  int picked = -1;
  {
    const FontScope small(fonts, Font::small);
    ImGui::TextDisabled("%s", overlay.title.c_str());
  }
  if (overlay.just_opened) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(320);
  const bool entered =
      text_field("##narrow", "type to narrow", overlay.text, ImGuiInputTextFlags_EnterReturnsTrue);
  std::vector<int> shown;
  for (std::size_t i = 0; i < overlay.items.size(); ++i) {
    if (matches(overlay.items[i].label, overlay.text)) shown.push_back(static_cast<int>(i));
  }
  if (shown.empty()) ImGui::TextDisabled("nothing matches");
  const float row = ImGui::GetTextLineHeightWithSpacing();
  const auto rows = static_cast<float>(std::clamp(static_cast<int>(shown.size()), 1, kMostRows));
  if (!shown.empty() && ImGui::BeginChild("##list", {320, row * rows + 4})) {
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(shown.size()), row);
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const OverlayItem& item = overlay.items[static_cast<std::size_t>(shown[static_cast<std::size_t>(i)])];
        ImGui::PushID(i);
        if (ImGui::Selectable(item.label.c_str(), i == 0 && !overlay.text.empty()))
          picked = shown[static_cast<std::size_t>(i)];
        if (!item.hint.empty()) {
          ImGui::SameLine(
              std::max(160.0F, ImGui::GetWindowWidth() - ImGui::CalcTextSize(item.hint.c_str()).x - 8));
          ImGui::TextDisabled("%s", item.hint.c_str());
        }
        ImGui::PopID();
      }
    }
  }
  if (!shown.empty()) ImGui::EndChild();
  if (entered && !shown.empty()) picked = shown.front();
  return picked;
}

}  // namespace

void Context::draw_overlay() {
  Overlay& overlay = ui.overlay;
  if (!overlay.open) return;
  if (overlay.just_opened) ImGui::OpenPopup(kPopup);
  ImGui::SetNextWindowPos({overlay.anchor.x, overlay.anchor.bottom() + 4}, ImGuiCond_Appearing);
  ImGui::SetNextWindowSizeConstraints({140, 0}, {kWidest, window.h - 16});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8, 8});
  int picked = -1;
  const FontScope body(canvas.fonts(), Font::body);
  if (ImGui::BeginPopup(kPopup)) {
    picked = overlay.filter ? list_to_pick_from(overlay, canvas.fonts()) : menu_items(overlay);
    if (picked >= 0) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
    overlay.just_opened = false;
  } else {
    overlay = {};  // closed by a click outside or Escape
  }
  ImGui::PopStyleVar();
  if (picked < 0) return;
  const OverlayItem chosen = overlay.items[static_cast<std::size_t>(picked)];
  overlay = {};
  if (chosen.act) chosen.act();
}

}  // namespace shardscope::gui
