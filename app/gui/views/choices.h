// Options of a panel, one of which is active: in the title line as far as they fit, in a menu for the rest,
// and in the command palette, so that none is lost in a narrow panel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/views/context.h"

namespace shardscope::gui {

struct Choice {
  std::string name;  ///< heading in a menu: "below the curve"
  std::vector<std::string> labels;
  int chosen = 0;
  std::function<void(AppState&, int)> choose;
};

/// Form of a choice in a title line: a button per label, a menu button with the active label, or an entry in
/// the menu of those that do not fit.
enum class ChoiceForm : std::uint8_t { buttons, menu, hidden };
/// `buttons` and `menu`: width of each choice in that form; `more`: width of the menu button for the hidden
/// ones. The last choices are reduced first.
[[nodiscard]] std::vector<ChoiceForm> fit_choices(const std::vector<float>& buttons,
                                                  const std::vector<float>& menu, float more, float room);

/// Draws the choices at the right end of `room` and removes their width.
void draw_choices(Context& ctx, const std::vector<Choice>& choices, Rect& room);

}  // namespace shardscope::gui
