// The tool tip by keyboard: the pointer is put on what has the keyboard, so that a panel says there what it
// says under a pointer.
#pragma once

#include <optional>

namespace shardscope::gui {

class Context;

class KeyTip {
 public:
  [[nodiscard]] bool shown() const noexcept { return shown_; }
  void toggle();
  void hide();
  /// For the next frame: the point that the tip is of, in the panel that has the keyboard. Without it that is
  /// the middle of ImGui's item.
  void aim(float x, float y) { aimed_ = Point{x, y}; }
  /// Call before ImGui's frame. The user's own pointer ends the tip.
  void put_pointer();
  /// Call when everything is drawn: follows the keyboard, and Ctrl with the arrow keys.
  void follow(Context& ctx);

 private:
  struct Point {
    float x = 0, y = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  bool shown_ = false, put_back_ = false;
  std::optional<Point> aimed_;
  Point of_, moved_;           ///< what has the keyboard, and the distance moved from there by keys
  std::optional<Point> at_;    ///< where the pointer is to be
  std::optional<Point> put_;   ///< where it was put last
  std::optional<Point> user_;  ///< where the user's own pointer is
  double changed_at_ = 0;      ///< seconds
};

}  // namespace shardscope::gui
