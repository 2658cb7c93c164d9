// Position and size of the window on the desktop, kept for its next start.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardscope::gui {

/// In screen coordinates. A maximized window keeps the position and size that it returns to.
struct WindowPlace {
  int x = 0, y = 0, width = 0, height = 0;
  bool maximized = false;
  /// False until a window has been at a place.
  [[nodiscard]] bool known() const noexcept { return width > 0 && height > 0; }
  friend bool operator==(const WindowPlace&, const WindowPlace&) = default;
};

/// Part of the desktop without bars and docks.
struct ScreenArea {
  int x = 0, y = 0, width = 0, height = 0;
};

/// The place, if the title bar can be reached with the pointer on one of the screens, else moved into the
/// first of them and not larger than it: screens are unplugged between two starts. Without screens:
/// unchanged.
[[nodiscard]] WindowPlace reachable(WindowPlace place, std::span<const ScreenArea> screens);

/// A line of the settings file; take_line() ignores other and invalid lines.
[[nodiscard]] std::string line_of(const WindowPlace& place);
void take_line(WindowPlace& place, std::string_view line);

}  // namespace shardscope::gui
