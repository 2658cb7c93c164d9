// A press comes to ImGui in a frame after the pointer's move to its place: a plot takes a press, and with it
// the keyboard, only where the pointer already was in the frame before. A slow frame would else lose a click.
#pragma once

#include <memory>

namespace shardscope::gui {

class HeldPress {
 public:
  HeldPress();
  ~HeldPress();
  HeldPress(const HeldPress&) = delete;
  HeldPress& operator=(const HeldPress&) = delete;

  /// First in a frame: what was held goes to its place among the other events.
  void release();
  /// Last before ImGui's frame: holds the first press or turn of the wheel that follows a move, and every
  /// event after it.
  void hold();
  /// Another frame has to be drawn at once.
  [[nodiscard]] bool holds() const noexcept;

 private:
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace shardscope::gui
