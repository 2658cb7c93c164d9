#include "app/gui/views/imgui_text.h"

#include <imgui_internal.h>

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

}  // namespace

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
