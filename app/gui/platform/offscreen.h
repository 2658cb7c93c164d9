// Renders without a window and without a display: an EGL context on no surface (Mesa's llvmpipe will
// do), a framebuffer object, and a read-back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/platform/frame.h"

namespace shardscope::gui {

class Offscreen {
 public:
  /// Size in device pixels. Throws std::runtime_error saying what EGL or GL lacks and what to install.
  Offscreen(int width, int height);
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;
  /// Builds and draws frames until nothing moves any more, and returns the picture, RGBA, top row first.
  [[nodiscard]] std::vector<std::uint8_t> render(Frame& frame, AppState& app, const std::string& panel,
                                                 float scale);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::gui
