// When the window owes a frame for what the user did.
#pragma once

#include <algorithm>

namespace shardscope::gui {

/// A frame may act on what it is given after half of it is drawn, so each frame that took input in is
/// followed by another. Frames are not counted from when input arrived: of a press and a release that come
/// while one slow frame is drawn the next frame is given the press and only the one after it the release.
class Redraw {
 public:
  void input() { owed_ = kFramesPerEvent; }
  void drawn(bool took_input) { owed_ = std::max(owed_ - 1, took_input ? 1 : 0); }
  [[nodiscard]] bool owed() const noexcept { return owed_ > 0; }

 private:
  static constexpr int kFramesPerEvent = 2;
  int owed_ = kFramesPerEvent;
};

}  // namespace shardscope::gui
