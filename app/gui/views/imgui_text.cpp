#include "app/gui/views/imgui_text.h"

#include <imgui_internal.h>

#include <cstdarg>

namespace shardscope::gui {

namespace {

int grow(ImGuiInputTextCallbackData* data) {
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    auto& held = *static_cast<std::string*>(data->UserData);
    held.resize(static_cast<std::size_t>(data->BufTextLen));
    data->Buf = held.data();
  }
  return 0;
}

void show_tip(const char* format, va_list values) {
  constexpr float kWidest = 420;
  ImGuiTextBuffer text;
  text.appendfv(format, values);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8, 8});
  if (ImGui::BeginTooltipEx(ImGuiTooltipFlags_OverridePrevious, ImGuiWindowFlags_None)) {
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + kWidest);
    ImGui::TextUnformatted(text.begin(), text.end());
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void padded_tip(const char* format, ...) {
  va_list values;
  va_start(values, format);
  show_tip(format, values);
  va_end(values);
}

void item_tip(const char* format, ...) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) return;
  va_list values;
  va_start(values, format);
  show_tip(format, values);
  va_end(values);
}

bool text_area(const char* id, std::string& text, ImVec2 size) {
  return ImGui::InputTextMultiline(id, text.data(), text.capacity() + 1, size,
                                   ImGuiInputTextFlags_CallbackResize, grow, &text);
}

bool text_field(const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags) {
  return ImGui::InputTextWithHint(id, hint, text.data(), text.capacity() + 1,
                                  flags | ImGuiInputTextFlags_CallbackResize, grow, &text);
}

void cut_line(Canvas& canvas, const std::string& text, Rgb color) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size{ImGui::GetContentRegionAvail().x, ImGui::GetTextLineHeight()};
  ImDrawList* const outside = canvas.list();
  canvas.draw_on(ImGui::GetWindowDrawList());
  canvas.text_in({at.x, at.y, size.x, size.y}, text, color);
  canvas.draw_on(outside);
  ImGui::Dummy(size);
}

bool menu_key_pressed() {
  return ImGui::IsKeyPressed(ImGuiKey_Menu, false) || ImGui::IsKeyChordPressed(ImGuiMod_Shift | ImGuiKey_F10);
}

bool arrow_enters(const char* id) {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  return g.NavJustMovedToId != 0 && g.NavJustMovedToId == ImGui::GetID(id) && !g.NavJustMovedToIsTabbing;
}

}  // namespace shardscope::gui
