#include "app/gui/platform/viewports.h"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

namespace shardscope::gui {
namespace {

/// The backend's functions, called by ours: ImGui takes plain function pointers.
struct Backend {
  void (*create)(ImGuiViewport*) = nullptr;
  void (*set_position)(ImGuiViewport*, ImVec2) = nullptr;
  ImVec2 (*position)(ImGuiViewport*) = nullptr;
  void (*set_size)(ImGuiViewport*, ImVec2) = nullptr;
  ImVec2 (*size)(ImGuiViewport*) = nullptr;
  void (*callbacks)(GLFWwindow*) = nullptr;
  float to_logical = 1, density = 1;
  GLFWwindow* under_pointer = nullptr;
};
Backend g_backend;

/// To integer screen coordinates: the backend truncates, and a window would drift to the upper left.
ImVec2 screen(ImVec2 logical) {
  return {std::round(logical.x / g_backend.to_logical), std::round(logical.y / g_backend.to_logical)};
}

ImVec2 logical(ImVec2 screen) { return {screen.x * g_backend.to_logical, screen.y * g_backend.to_logical}; }

void create(ImGuiViewport* viewport) {
  g_backend.create(viewport);
  if (viewport->PlatformHandle != nullptr)
    g_backend.callbacks(static_cast<GLFWwindow*>(viewport->PlatformHandle));
}

void set_position(ImGuiViewport* viewport, ImVec2 at) { g_backend.set_position(viewport, screen(at)); }
ImVec2 position(ImGuiViewport* viewport) { return logical(g_backend.position(viewport)); }
void set_size(ImGuiViewport* viewport, ImVec2 size) { g_backend.set_size(viewport, screen(size)); }
ImVec2 size(ImGuiViewport* viewport) { return logical(g_backend.size(viewport)); }
ImVec2 density(ImGuiViewport*) { return {g_backend.density, g_backend.density}; }

bool enabled() { return (ImGui::GetIO().ConfigFlags & ImGuiConfigFlags_ViewportsEnable) != 0; }

void set_monitors() {
  int count = 0;
  GLFWmonitor** const monitors = glfwGetMonitors(&count);
  ImVector<ImGuiPlatformMonitor>& out = ImGui::GetPlatformIO().Monitors;
  out.resize(0);
  for (int i = 0; i < count; ++i) {
    const GLFWvidmode* const mode = glfwGetVideoMode(monitors[i]);
    if (mode == nullptr) continue;
    int x = 0, y = 0, left = 0, top = 0, width = 0, height = 0;
    glfwGetMonitorPos(monitors[i], &x, &y);
    glfwGetMonitorWorkarea(monitors[i], &left, &top, &width, &height);
    ImGuiPlatformMonitor monitor;
    monitor.MainPos = logical({static_cast<float>(x), static_cast<float>(y)});
    monitor.MainSize = logical({static_cast<float>(mode->width), static_cast<float>(mode->height)});
    monitor.WorkPos = monitor.MainPos;
    monitor.WorkSize = monitor.MainSize;
    if (width > 0 && height > 0) {
      monitor.WorkPos = logical({static_cast<float>(left), static_cast<float>(top)});
      monitor.WorkSize = logical({static_cast<float>(width), static_cast<float>(height)});
    }
    out.push_back(monitor);
  }
}

}  // namespace

Viewports::Viewports(void (*callbacks)(GLFWwindow*)) {
  ImGuiIO& io = ImGui::GetIO();
  constexpr ImGuiBackendFlags kBoth =
      ImGuiBackendFlags_PlatformHasViewports | ImGuiBackendFlags_RendererHasViewports;
  if ((io.BackendFlags & kBoth) != kBoth) return;
  ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
  g_backend = {platform.Platform_CreateWindow,
               platform.Platform_SetWindowPos,
               platform.Platform_GetWindowPos,
               platform.Platform_SetWindowSize,
               platform.Platform_GetWindowSize,
               callbacks,
               1,
               1,
               nullptr};
  platform.Platform_CreateWindow = create;
  platform.Platform_SetWindowPos = set_position;
  platform.Platform_GetWindowPos = position;
  platform.Platform_SetWindowSize = set_size;
  platform.Platform_GetWindowSize = size;
  platform.Platform_GetWindowFramebufferScale = density;
  io.ConfigFlags |= ImGuiConfigFlags_ViewportsEnable;
}

Viewports::~Viewports() {
  if (enabled()) ImGui::DestroyPlatformWindows();
}

void Viewports::scale(float to_logical, float density) {
  g_backend.to_logical = to_logical;
  g_backend.density = density;
  if (enabled()) set_monitors();
}

void Viewports::pointer(GLFWwindow* window, double& x, double& y) {
  const double factor = static_cast<double>(g_backend.to_logical);
  x *= factor;
  y *= factor;
  if (!enabled()) return;
  // The backend adds the window's position in screen coordinates.
  int left = 0, top = 0;
  glfwGetWindowPos(window, &left, &top);
  x += left * (factor - 1);
  y += top * (factor - 1);
}

void Viewports::pointer_entered(GLFWwindow* window, bool entered) {
  if (entered)
    g_backend.under_pointer = window;
  else if (g_backend.under_pointer == window)
    g_backend.under_pointer = nullptr;
}

void Viewports::follow_pointer(GLFWwindow* main) {
  if (g_backend.under_pointer != nullptr) return;
  const auto focused = [](const ImGuiViewport* viewport) {
    auto* const window = static_cast<GLFWwindow*>(viewport->PlatformHandle);
    return window != nullptr && glfwGetWindowAttrib(window, GLFW_FOCUSED) != 0;
  };
  if (std::ranges::none_of(ImGui::GetPlatformIO().Viewports, focused)) return;
  double x = 0, y = 0;
  int left = 0, top = 0;
  glfwGetCursorPos(main, &x, &y);
  if (enabled()) glfwGetWindowPos(main, &left, &top);
  const ImVec2 at = logical({static_cast<float>(x + left), static_cast<float>(y + top)});
  ImGui::GetIO().AddMousePosEvent(at.x, at.y);
}

void Viewports::draw(GLFWwindow* main) const {
  if (!enabled()) return;
  ImGui::UpdatePlatformWindows();
  ImGui::RenderPlatformWindowsDefault();
  glfwMakeContextCurrent(main);
}

}  // namespace shardscope::gui
