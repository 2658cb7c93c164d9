// Rendering without a window or display: a surfaceless EGL context (Mesa's llvmpipe suffices), a framebuffer
// object, and read-back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/platform/frame.h"

namespace shardscope::gui {

class Offscreen {
 public:
  /// Size in device pixels. Throws std::runtime_error that names what EGL or GL lacks and what to install.
  Offscreen(int width, int height);
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;
  /// Builds and draws frames until animations end, and returns the picture: RGBA, top row first.
  [[nodiscard]] std::vector<std::uint8_t> render(Frame& frame, AppState& app, const std::string& panel,
                                                 float scale);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::gui
