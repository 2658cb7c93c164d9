// Decides when the window must draw another frame after user input.
#pragma once

#include <algorithm>

namespace shardscope::gui {

/// A frame may react to its input after half of it is drawn, so each frame that consumed input is followed by
/// another one. The count does not start when input arrives: of a press and a release that arrive during one
/// slow frame the next frame gets the press and only the one after it the release.
class Redraw {
 public:
  void input() { pending_ = kFramesPerEvent; }
  void drawn(bool took_input) { pending_ = std::max(pending_ - 1, took_input ? 1 : 0); }
  [[nodiscard]] bool pending() const noexcept { return pending_ > 0; }

 private:
  static constexpr int kFramesPerEvent = 2;
  int pending_ = kFramesPerEvent;
};

}  // namespace shardscope::gui
