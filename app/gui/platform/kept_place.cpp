#include "app/gui/platform/kept_place.h"

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <span>
#include <vector>

namespace shardscope::gui {
namespace {

/// Primary screen first.
std::vector<ScreenArea> screens() {
  int count = 0;
  GLFWmonitor** const monitors = glfwGetMonitors(&count);
  std::vector<ScreenArea> out;
  for (GLFWmonitor* const monitor : std::span(monitors, static_cast<std::size_t>(count))) {
    ScreenArea& area = out.emplace_back();
    glfwGetMonitorWorkarea(monitor, &area.x, &area.y, &area.width, &area.height);
  }
  return out;
}

}  // namespace

KeptPlace::KeptPlace() {
  ImGuiSettingsHandler handler;
  handler.UserData = this;
  handler.TypeName = "Desktop";
  handler.TypeHash = ImHashStr("Desktop");
  handler.ReadOpenFn = [](ImGuiContext*, ImGuiSettingsHandler* own, const char*) { return own->UserData; };
  handler.ReadLineFn = [](ImGuiContext*, ImGuiSettingsHandler*, void* entry, const char* line) {
    take_line(static_cast<KeptPlace*>(entry)->kept_, line);
  };
  handler.WriteAllFn = [](ImGuiContext*, ImGuiSettingsHandler* own, ImGuiTextBuffer* out) {
    const WindowPlace& place = static_cast<const KeptPlace*>(own->UserData)->kept_;
    if (place.known()) out->appendf("[Desktop][Window]\n%s\n\n", line_of(place).c_str());
  };
  ImGui::AddSettingsHandler(&handler);
}

void KeptPlace::apply(GLFWwindow* window) const {
  if (!kept_.known()) return;
  const WindowPlace place = reachable(kept_, screens());
  glfwSetWindowSize(window, place.width, place.height);
  if (glfwGetPlatform() != GLFW_PLATFORM_WAYLAND) glfwSetWindowPos(window, place.x, place.y);
  if (place.maximized) glfwMaximizeWindow(window);
}

void KeptPlace::follow(GLFWwindow* window, double seconds) {
  constexpr double kRest = 0.3;
  if (glfwGetWindowAttrib(window, GLFW_ICONIFIED) != 0) return;
  WindowPlace now = kept_;
  now.maximized = glfwGetWindowAttrib(window, GLFW_MAXIMIZED) != 0;
  if (!now.maximized) {
    glfwGetWindowSize(window, &now.width, &now.height);
    if (glfwGetPlatform() != GLFW_PLATFORM_WAYLAND) glfwGetWindowPos(window, &now.x, &now.y);
  }
  if (now != seen_) {
    seen_ = now;
    seen_at_ = seconds;
  } else if (now != kept_ && seconds - seen_at_ >= kRest) {
    kept_ = now;
    // ImGui asks for a save in a later frame, which an idle window does not draw.
    ImGui::GetIO().WantSaveIniSettings = true;
  }
}

}  // namespace shardscope::gui
