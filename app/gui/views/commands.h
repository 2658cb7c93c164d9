// The commands of the window: the one list that menus, the palette, keys and the sheet of keys are
// made of.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/gui/views/context.h"

namespace shardscope::gui {

enum class Menu : std::uint8_t { file, view, go, run, help };
inline constexpr int kMenuCount = 5;
[[nodiscard]] const char* name_of(Menu menu) noexcept;

struct Command {
  Menu menu{};
  const char* name = "";
  const char* keys = "";  ///< as people read them; empty: none
  int code = 0;           ///< of the key, GLFW's; 0: none
  int modifiers = 0;
  void (*run)(Context&) = nullptr;
  bool (*enabled)(const Context&) = nullptr;            ///< null: always
  bool (*checked)(const Context&) = nullptr;            ///< null: it is no switch
  bool line_before = false;                             ///< in its menu
  Context::WithShift shift = Context::WithShift::same;  ///< of a plain key: what it does with Shift held
  /// Text fields keep plain keys for themselves; a list that has the keyboard keeps arrows, space and Enter.
  [[nodiscard]] bool available(const Context& ctx) const { return enabled == nullptr || enabled(ctx); }
};
[[nodiscard]] std::span<const Command> commands();
/// Other words by which the palette finds a command; empty: none.
[[nodiscard]] std::string_view also_called(const Command& command) noexcept;

/// Runs commands by their keys. `typing`: a text field has the keyboard; `in_list`: ImGui moves its cursor.
void run_pressed(Context& ctx, bool typing, bool in_list);

}  // namespace shardscope::gui
