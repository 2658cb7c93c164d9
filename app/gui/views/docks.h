// Positions of the panels: an ImGui dock space per layout, with its windows.
#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/layout.h"
#include "app/gui/model/panel_moves.h"
#include "app/gui/views/dock_moves.h"

namespace shardscope::gui {

class Docks {
 public:
  /// The panels of a layout, in the order they were opened.
  [[nodiscard]] const std::vector<std::string>& shown(const std::string& layout);
  /// ImGui name of a panel's window: distinct per layout, so that layouts keep separate positions.
  [[nodiscard]] static std::string window_name(const std::string& layout, std::string_view panel,
                                               std::string_view title);
  /// Submits the dock space of `layout` at `room` in the current window; initially arranged by its preset.
  void submit(const std::string& layout, const Rect& room);
  /// Shows `panel` in place of `old_panel`; swaps them if it is already shown.
  void replace(const std::string& layout, const std::string& old_panel, const std::string& panel);
  /// Both are shown, as tabs of the same dock node.
  [[nodiscard]] bool share_a_place(const std::string& layout, const std::string& panel,
                                   const std::string& other);
  /// The panel's tab is the visible one of its dock node.
  [[nodiscard]] static bool in_front(const std::string& layout, const std::string& panel);
  /// Opens a panel at its previous position; initially as a tab beside `beside`, else beside the first panel.
  void open(const std::string& layout, const std::string& panel, const std::string& beside = {});
  /// Moves a panel of the layout as a command asks. Returns why it stays; empty: it moves.
  [[nodiscard]] std::string move(const std::string& layout, const std::string& panel, PanelMove move);
  void close(const std::string& layout, const std::string& panel);
  /// Restores the preset.
  void reset(const std::string& layout);
  /// The presets, then the user's own layouts.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::vector<std::string>& own_names() const { return own_; }
  /// Saves the arrangement of `layout` as a layout of the user's own. Returns an error message for the name,
  /// empty on success.
  [[nodiscard]] std::string save_as(const std::string& layout, const std::string& name);
  void forget(const std::string& own_layout);
  /// Stores the panels shown and their positions in ImGui's settings file. Needs ImGui's context.
  void keep_in_settings();

 private:
  struct Shown {
    std::vector<std::string> panels;
    bool rebuild = false;
    ImGuiID space = 0;
  };
  Shown& of(const std::string& layout);
  std::map<std::string, Shown> layouts_;
  std::vector<std::string> own_;
  DockMoves moves_;
};

}  // namespace shardscope::gui
