// Where panels are: for each layout a dock space of ImGui with the windows that it shows.
#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/layout.h"

namespace shardscope::gui {

class Docks {
 public:
  /// The panels that a layout shows, in the order in which they were opened.
  [[nodiscard]] const std::vector<std::string>& shown(const std::string& layout);
  /// ImGui's name of a panel's window: each layout has its own, so that one does not move the other's.
  [[nodiscard]] static std::string window_name(const std::string& layout, std::string_view panel,
                                               std::string_view title);
  /// Submits the dock space of `layout` at `room` of the current window; the first time as its preset says.
  void submit(const std::string& layout, const Rect& room);
  /// The panel in place of another; if it is shown already, the two change places.
  void replace(const std::string& layout, const std::string& old_panel, const std::string& panel);
  /// Both are shown, as tabs of one place.
  [[nodiscard]] bool share_a_place(const std::string& layout, const std::string& panel,
                                   const std::string& other);
  /// Of the tabs of its place it is the one that is seen.
  [[nodiscard]] static bool in_front(const std::string& layout, const std::string& panel);
  /// As a tab beside the panel `beside` where that is shown, else beside the first.
  void open(const std::string& layout, const std::string& panel, const std::string& beside = {});
  void close(const std::string& layout, const std::string& panel);
  /// As the preset says again.
  void reset(const std::string& layout);
  /// The presets, then the user's own.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::vector<std::string>& own_names() const { return own_; }
  /// A layout of the user's own with the panels where they are in `layout`. Returns what is wrong with the
  /// name, or nothing.
  [[nodiscard]] std::string save_as(const std::string& layout, const std::string& name);
  void forget(const std::string& own_layout);
  /// ImGui's settings file keeps which panels are shown beside where they are. Needs ImGui's context.
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
};

}  // namespace shardscope::gui
