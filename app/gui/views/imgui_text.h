// ImGui's text field on a std::string, a line that is cut, and its fonts by the dashboard's names.
#pragma once

#include <imgui.h>

#include <string>

#include "app/gui/views/canvas.h"

namespace shardscope::gui {

/// As ImGui::InputTextWithHint: true when it was changed, or with EnterReturnsTrue when Enter was pressed.
bool text_field(const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags = 0);

/// One line at ImGui's cursor, as wide as there is room, cut with an ellipsis when too long.
void cut_line(Canvas& canvas, const std::string& text, Rgb color);

/// Asked right before BeginTable() of a list that scrolls, with its id: an arrow key has come to the list.
/// Its first row is then given the keyboard (SetKeyboardFocusHere()): ImGui itself goes over such a list as
/// over one item, until Enter is pressed on it. Tab still goes past it.
[[nodiscard]] bool arrow_enters(const char* id);

/// ImGui writes with this font while it lasts.
class FontScope {
 public:
  FontScope(const Fonts& fonts, Font font) { ImGui::PushFont(fonts.of(font), line_height(font)); }
  ~FontScope() { ImGui::PopFont(); }
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;
};

}  // namespace shardscope::gui
