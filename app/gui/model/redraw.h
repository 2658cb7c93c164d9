// When the window owes a frame for what the user did.
#pragma once

#include <algorithm>

namespace shardscope::gui {

/// A frame may act on what it is given after half of it is drawn, so each frame that took input in is
/// followed by another. Frames are not counted from when input arrived: of a press and a release that come
/// while one slow frame is drawn the next frame is given the press and only the one after it the release.
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
