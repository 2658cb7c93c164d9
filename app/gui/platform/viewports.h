// Panels dragged out of the window: each becomes a desktop window (ImGui viewports, where the platform
// backend supports them: on X11, not on Wayland). ImGui positions are logical pixels, desktop positions
// screen coordinates; both have the same origin.
#pragma once

struct GLFWwindow;

namespace shardscope::gui {

class Viewports {
 public:
  /// Call after the backends' Init(). `callbacks` is called for each further window, after the backend's own.
  explicit Viewports(void (*callbacks)(GLFWwindow*));
  ~Viewports();
  Viewports(const Viewports&) = delete;
  Viewports& operator=(const Viewports&) = delete;

  /// Call before each frame. `to_logical`: logical pixels per screen coordinate; `density`: framebuffer
  /// pixels per logical pixel.
  void scale(float to_logical, float density);
  /// Converts a pointer position in `window` to the values that the backend maps to logical pixels.
  static void pointer(GLFWwindow* window, double& x, double& y);
  static void pointer_entered(GLFWwindow* window, bool entered);
  /// Call after the backend's NewFrame(), which sets a pointer outside of every window in screen
  /// coordinates.
  static void follow_pointer(GLFWwindow* main);
  /// Creates, moves and draws the further windows; call after the main one, whose context is current again
  /// afterwards.
  void draw(GLFWwindow* main) const;
};

}  // namespace shardscope::gui
