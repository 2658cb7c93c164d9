// ImGui's text field for std::string, truncated lines, tips, and ImGui's fonts by our names.
#pragma once

#include <imgui.h>

#include <string>

#include "app/gui/views/canvas.h"

namespace shardscope::gui {

/// Like ImGui::InputTextWithHint: true when changed, or with EnterReturnsTrue when Enter was pressed.
bool text_field(const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags = 0);

/// Like ImGui::InputTextMultiline, for a text of any length.
bool text_area(const char* id, std::string& text, ImVec2 size);

/// One line at ImGui's cursor, truncated with an ellipsis to the available width.
void cut_line(Canvas& canvas, const std::string& text, Rgb color);

/// ImGui::SetTooltip() with the padding and width of the other tips: the theme's windows have no padding.
void padded_tip(const char* format, ...) IM_FMTARGS(1);
/// The same, when the item before is hovered.
void item_tip(const char* format, ...) IM_FMTARGS(1);

/// Whether an arrow key has entered the scrolling list with this id; call right before its BeginTable(). Then
/// focus its first row with SetKeyboardFocusHere(): ImGui itself treats such a list as one item until Enter
/// is pressed on it. Tab still skips it.
[[nodiscard]] bool arrow_enters(const char* id);

/// The key of a keyboard for context menus, or Shift+F10.
[[nodiscard]] bool menu_key_pressed();

/// Sets ImGui's font for a scope.
class FontScope {
 public:
  FontScope(const Fonts& fonts, Font font) { ImGui::PushFont(fonts.of(font), line_height(font)); }
  ~FontScope() { ImGui::PopFont(); }
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;
};

}  // namespace shardscope::gui
