// One frame of the dashboard, for windows and screenshots: fonts, ImGui's begin and end, and the workspace in
// between.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/frame_times.h"
#include "app/gui/views/held_press.h"
#include "app/gui/views/workspace.h"

namespace shardscope::gui {

class Frame {
 public:
  Frame();  ///< creates the ImGui context
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Builds one frame. Display size, pointer and keys must be in ImGui's IO, in logical pixels.
  ImDrawData* build(AppState& app, std::string_view panel, double seconds);

  /// Reports a key pressed or repeated, for the next frame.
  void press(int code, int modifiers = 0) { keys_.push_back({code, modifiers}); }
  [[nodiscard]] Workspace& workspace() { return workspace_; }
  [[nodiscard]] bool moving() const { return moving_; }
  /// Seconds after which the last frame is out of date, whatever happens.
  [[nodiscard]] std::optional<double> again_s() const { return again_s_; }
  /// Whether the last frame received user input (Redraw::drawn).
  [[nodiscard]] bool took_input() const { return took_input_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Of building frames: layout, text, draw lists.
  [[nodiscard]] const FrameTimes& times() const { return times_; }
  [[nodiscard]] FrameTimes& times() { return times_; }
  /// Measures the parts of the window as well.
  void measure_parts() { workspace_.ui().times = &times_; }
  /// Why text does not look as designed; empty: no problem.
  [[nodiscard]] const std::string& font_problem() const { return font_problem_; }

 private:
  void load_fonts();
  /// Gives arrows, space and Enter to ImGui while the keyboard moves its cursor or a list is open; otherwise
  /// they step through the run.
  void choose_navigation(bool several);
  void enter_menus();
  [[nodiscard]] bool leave_menus();
  Workspace workspace_;
  std::map<std::string, std::vector<char>> font_bytes_;  ///< files of other scripts; ImGui reads from them
  Fonts fonts_;
  FrameTimes times_;
  std::string font_problem_;
  std::vector<KeyPress> keys_;
  HeldPress presses_;
  bool moving_ = false, took_input_ = false;
  std::optional<double> again_s_;
  int unsettled_ = 0;         ///< frames still needed by the layout
  bool by_keyboard_ = false;  ///< ImGui's cursor is visible, since Tab or Alt was pressed
  std::uint64_t count_ = 0;
};

}  // namespace shardscope::gui
