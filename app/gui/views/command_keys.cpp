// Which command a key press runs, and which keys a text field or a list keeps for itself.
#include <imgui.h>

#include <algorithm>

#include "app/gui/views/commands.h"

namespace shardscope::gui {
namespace {

/// Function keys do not produce text: text fields leave them to the commands.
bool is_function_key(int code) { return code >= key::kF1 && code < key::kF1 + 25; }

/// Keys that a text field uses itself, for undo and moving the caret.
bool of_a_text(int code) {
  return code == 'Z' || code == 'Y' || code == key::kLeft || code == key::kRight || code == key::kUp ||
         code == key::kDown;
}

/// Keys that a focused ImGui list or tree uses; Context::key_area() leaves those for pages to the commands.
bool of_a_list(int code, bool in_key_area) {
  const bool page = code == 266 || code == 267;
  return code == key::kLeft || code == key::kRight || code == key::kSpace || (page && !in_key_area);
}

/// Further usual keys of commands that have one already.
struct OtherKey {
  int code, modifiers;
  std::string_view command;  ///< Command::name
};
constexpr OtherKey kOtherKeys[] = {{key::kKeypadPlus, key::kCtrl, "Larger text"},
                                   {key::kKeypadMinus, key::kCtrl, "Smaller text"},
                                   {'Z', key::kCtrl | key::kShift, "Redo navigation"}};

void run_named(Context& ctx, std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  if (found != commands().end() && found->available(ctx)) found->run(ctx);
}

}  // namespace

void run_pressed(Context& ctx, bool typing, bool in_list) {
  for (const Command& command : commands()) {
    if (command.code == 0 || command.run == nullptr) continue;
    const bool plain = command.modifiers == 0;
    if (typing && plain && !is_function_key(command.code)) continue;
    if (typing && of_a_text(command.code)) continue;
    if (in_list && plain && of_a_list(command.code, ctx.ui.in_key_area)) continue;
    for (int times = ctx.presses(command.code, command.modifiers, command.shift); times > 0; --times) {
      if (command.available(ctx)) command.run(ctx);
    }
  }
  for (const OtherKey& other : kOtherKeys)
    if (!typing && ctx.presses(other.code, other.modifiers) > 0) run_named(ctx, other.command);
  // The key of '?' depends on the keyboard layout.
  if (!typing && std::ranges::find(ImGui::GetIO().InputQueueCharacters, ImWchar('?')) !=
                     ImGui::GetIO().InputQueueCharacters.end())
    ctx.ui.help = !ctx.ui.help;
}

}  // namespace shardscope::gui
