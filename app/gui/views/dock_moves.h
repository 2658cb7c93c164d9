// Panels moved by commands, as ImGui's docking moves them by dragging.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/panel_moves.h"

struct ImGuiWindow;

namespace shardscope::gui {

/// Exchanges the places of two docked windows; nothing for windows that are not docked.
void swap_places(const ImGuiWindow* a_window, const ImGuiWindow* b_window);

class DockMoves {
 public:
  /// Moves `window` (its ImGui name) of a dock space; `windows`: all of the layout. Returns why nothing
  /// moves; empty: it does, in the next frames.
  [[nodiscard]] std::string move(const std::string& window, const std::vector<std::string>& windows,
                                 unsigned dock_space, PanelMove move);
  /// Call each frame, before the dock space is submitted; move() is called after that.
  void carry_out();

 private:
  /// A docked window leaves its place first, as in a drag: the tree of places changes by that, so the target
  /// is kept by the name of a window in it.
  struct Pending {
    std::string window;
    std::string beside;  ///< in the place to dock at; empty: the whole dock space, or its main place
    unsigned dock_space = 0;
    std::optional<Side> side;  ///< of that place; nullopt: as a tab
  };
  void dock(ImGuiWindow* window, Pending pending);
  std::string over(ImGuiWindow* window, const std::vector<std::string>& windows, unsigned dock_space,
                   Side side);
  std::string split(ImGuiWindow* window, unsigned dock_space, Side side);
  std::string tear_off(ImGuiWindow* window, const std::vector<std::string>& windows, unsigned dock_space);

  std::optional<Pending> pending_;
};

}  // namespace shardscope::gui
