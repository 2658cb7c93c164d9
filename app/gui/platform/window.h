// The window. Sleeps until there is input or a change, and draws only then.
#pragma once

#include <string>

#include "app/gui/platform/frame.h"

namespace shardscope::gui {

struct WindowOptions {
  int width = 1600, height = 900;
  bool sized = false;        ///< the user chose the size: it is not that of the last window
  std::string panel;         ///< empty: the whole workspace
  std::string state_dump;    ///< output file; empty: none
  bool frame_stats = false;  ///< print CPU time per frame at the end
  double close_after_s = 0;  ///< > 0: closes by itself (tests, measurements)
};

/// Makes SIGUSR1 request a state dump instead of ending the process.
void accept_dump_signal();
/// True if a display can be opened.
[[nodiscard]] bool have_display();
/// Runs until the window is closed. Returns the exit code. Throws std::runtime_error if a window with OpenGL
/// 3.3 cannot be created.
int run_window(AppState& app, const WindowOptions& options);

}  // namespace shardscope::gui
