// Panels that are dragged out of the window: each is a window of the desktop (ImGui's viewports, where the
// backend of the platform has them: on X11, not on Wayland). ImGui's places are logical pixels, the desktop's
// are screen coordinates; both have the same origin.
#pragma once

struct GLFWwindow;

namespace shardscope::gui {

class Viewports {
 public:
  /// After the backends' Init(). `callbacks` is called with each further window, which has the backend's own.
  explicit Viewports(void (*callbacks)(GLFWwindow*));
  ~Viewports();
  Viewports(const Viewports&) = delete;
  Viewports& operator=(const Viewports&) = delete;

  /// Before each frame. `to_logical`: logical pixels per screen coordinate; `density`: pixels of the
  /// framebuffer per logical one.
  void scale(float to_logical, float density);
  /// What the backend must be given for a pointer at `x` in `window`, so that it comes to logical pixels.
  static void pointer(GLFWwindow* window, double& x, double& y);
  static void pointer_entered(GLFWwindow* window, bool entered);
  /// After the backend's NewFrame(), which asks for a pointer outside of every window itself, in screen
  /// coordinates.
  static void follow_pointer(GLFWwindow* main);
  /// Makes, moves and draws the further windows; after the main one was drawn, whose context is current
  /// again.
  void draw(GLFWwindow* main) const;
};

}  // namespace shardscope::gui
