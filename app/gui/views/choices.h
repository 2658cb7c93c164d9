// What a panel can show, of which one holds: in its title line as far as there is room, in a menu there for
// the rest, and in the palette. So none is lost in a narrow panel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/views/context.h"

namespace shardscope::gui {

struct Choice {
  std::string name;  ///< what is chosen, as a menu's heading: "below the curve"
  std::vector<std::string> labels;
  int chosen = 0;
  std::function<void(AppState&, int)> choose;
};

/// How a choice stands in a title line: a button for each label, a menu button with the chosen one, or a part
/// of the menu of all that has no room.
enum class ChoiceForm : std::uint8_t { buttons, menu, hidden };
/// `buttons` and `menu`: widths of each choice in that form; `more`: of the menu button for the hidden ones.
/// The last ones give way first.
[[nodiscard]] std::vector<ChoiceForm> fit_choices(const std::vector<float>& buttons,
                                                  const std::vector<float>& menu, float more, float room);

/// Draws them at the right end of `room`, which shrinks by what they take.
void draw_choices(Context& ctx, const std::vector<Choice>& choices, Rect& room);

}  // namespace shardscope::gui
