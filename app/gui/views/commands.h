// The commands of the window: the only list, used by menus, the palette, key bindings and the sheet of
// keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// `panel` is a menu inside of `view`.
enum class Menu : std::uint8_t { file, view, go, run, help, panel };
inline constexpr int kMenuCount = 6;
[[nodiscard]] const char* name_of(Menu menu) noexcept;

struct Command {
  Menu menu{};
  const char* name = "";
  const char* keys = "";  ///< display text; empty: none
  int code = 0;           ///< GLFW key code; 0: none
  int modifiers = 0;
  void (*run)(Context&) = nullptr;
  bool (*enabled)(const Context&) = nullptr;            ///< null: always enabled
  bool (*checked)(const Context&) = nullptr;            ///< null: not a switch
  bool line_before = false;                             ///< separator before it in the menu
  Context::WithShift shift = Context::WithShift::same;  ///< meaning of a plain key with Shift
  /// Text fields receive plain keys themselves; a focused list receives arrows, space and Enter.
  [[nodiscard]] bool available(const Context& ctx) const { return enabled == nullptr || enabled(ctx); }
};
[[nodiscard]] std::span<const Command> commands();
/// Alternative words by which the palette finds a command; empty: none.
[[nodiscard]] std::string_view also_called(const Command& command) noexcept;

/// Runs commands by their keys. `typing`: a text field has the focus; `in_list`: ImGui moves its cursor.
void run_pressed(Context& ctx, bool typing, bool in_list);

}  // namespace shardscope::gui
