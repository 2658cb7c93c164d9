// The window's place on the desktop: read from the settings file at the start, followed and saved afterwards.
#pragma once

#include "app/gui/model/window_place.h"

struct GLFWwindow;

namespace shardscope::gui {

class KeptPlace {
 public:
  /// Adds itself to ImGui's settings: needs ImGui's context, which it must outlive until the last save.
  KeptPlace();
  KeptPlace(const KeptPlace&) = delete;
  KeptPlace& operator=(const KeptPlace&) = delete;

  /// Moves a window that is not visible yet to the place of the last one. Wayland lets no window choose its
  /// position: there it gets the size only.
  void apply(GLFWwindow* window) const;
  /// Call regularly. A place counts when the window has rested there: during a change of its state the
  /// desktop reports the size of a maximized window as that of a normal one.
  void follow(GLFWwindow* window, double seconds);

 private:
  WindowPlace kept_, seen_;
  double seen_at_ = 0;  ///< seconds, since then at `seen_`
};

}  // namespace shardscope::gui
