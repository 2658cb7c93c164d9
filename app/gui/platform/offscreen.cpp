#include "app/gui/platform/offscreen.h"

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <imgui_impl_opengl3.h>

#include <cstring>
#include <stdexcept>

namespace shardscope::gui {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("cannot render off screen: " + what + "; install libegl1 and libgl1-mesa-dri");
}

template <typename Function>
Function load(const char* name) {
  const auto found = eglGetProcAddress(name);
  if (found == nullptr) fail(std::string("OpenGL has no ") + name);
  return reinterpret_cast<Function>(found);
}

EGLDisplay open_display() {
  const char* const client = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  if (client != nullptr && std::strstr(client, "EGL_MESA_platform_surfaceless") != nullptr) {
    const auto get = load<PFNEGLGETPLATFORMDISPLAYEXTPROC>("eglGetPlatformDisplayEXT");
    const EGLDisplay display = get(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    if (display != EGL_NO_DISPLAY && eglInitialize(display, nullptr, nullptr)) return display;
  }
  const EGLDisplay display = eglGetDisplay(EGL_DEFAULT_DISPLAY);
  if (display == EGL_NO_DISPLAY || !eglInitialize(display, nullptr, nullptr)) fail("EGL has no display");
  return display;
}

}  // namespace

struct Offscreen::State {
  EGLDisplay display = EGL_NO_DISPLAY;
  EGLContext context = EGL_NO_CONTEXT;
  int width = 0, height = 0;
  GLuint framebuffer = 0, texture = 0;
  bool imgui = false;
};

Offscreen::Offscreen(int width, int height) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.width = width;
  s.height = height;
  s.display = open_display();
  if (!eglBindAPI(EGL_OPENGL_API)) fail("EGL offers no desktop OpenGL");
  const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint configs = 0;
  if (!eglChooseConfig(s.display, wanted, &config, 1, &configs) || configs == 0) config = nullptr;
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                            3,
                            EGL_CONTEXT_MINOR_VERSION,
                            3,
                            EGL_CONTEXT_OPENGL_PROFILE_MASK,
                            EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                            EGL_NONE};
  s.context = eglCreateContext(s.display, config, EGL_NO_CONTEXT, version);
  if (s.context == EGL_NO_CONTEXT) fail("there is no OpenGL 3.3 context");
  if (!eglMakeCurrent(s.display, EGL_NO_SURFACE, EGL_NO_SURFACE, s.context))
    fail("EGL cannot run without a surface");

  GLint largest = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &largest);
  if (width > largest || height > largest) {
    fail("size " + std::to_string(width) + "x" + std::to_string(height) + " is above the limit of " +
         std::to_string(largest));
  }
  glGenTextures(1, &s.texture);
  glBindTexture(GL_TEXTURE_2D, s.texture);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  load<PFNGLGENFRAMEBUFFERSPROC>("glGenFramebuffers")(1, &s.framebuffer);
  load<PFNGLBINDFRAMEBUFFERPROC>("glBindFramebuffer")(GL_FRAMEBUFFER, s.framebuffer);
  load<PFNGLFRAMEBUFFERTEXTURE2DPROC>("glFramebufferTexture2D")(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0,
                                                                GL_TEXTURE_2D, s.texture, 0);
  if (load<PFNGLCHECKFRAMEBUFFERSTATUSPROC>("glCheckFramebufferStatus")(GL_FRAMEBUFFER) !=
      GL_FRAMEBUFFER_COMPLETE) {
    fail("the framebuffer is not complete");
  }
}

Offscreen::~Offscreen() {
  if (state_->imgui) ImGui_ImplOpenGL3_Shutdown();
  if (state_->display == EGL_NO_DISPLAY) return;
  eglMakeCurrent(state_->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  if (state_->context != EGL_NO_CONTEXT) eglDestroyContext(state_->display, state_->context);
  eglTerminate(state_->display);
}

std::vector<std::uint8_t> Offscreen::render(Frame& frame, AppState& app, const std::string& panel,
                                            float scale) {
  State& s = *state_;
  if (!s.imgui && !ImGui_ImplOpenGL3_Init("#version 330")) fail("the OpenGL functions cannot be loaded");
  s.imgui = true;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {static_cast<float>(s.width) / scale, static_cast<float>(s.height) / scale};
  io.DisplayFramebufferScale = {scale, scale};
  io.MousePos = {-1, -1};
  // The first pass lays out the dock space, the second its panels; sizes and scales that depend on contents
  // are known only after these were drawn once.
  constexpr int kPasses = 4;
  for (int pass = 0; pass < kPasses; ++pass) {
    io.DeltaTime = 1.0F / 60;
    ImGui_ImplOpenGL3_NewFrame();
    ImDrawData* const data = frame.build(app, panel, 0);
    glViewport(0, 0, s.width, s.height);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(data);
  }
  glFinish();
  const std::size_t row = static_cast<std::size_t>(s.width) * 4;
  std::vector<std::uint8_t> upside_down(row * static_cast<std::size_t>(s.height));
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, s.width, s.height, GL_RGBA, GL_UNSIGNED_BYTE, upside_down.data());
  std::vector<std::uint8_t> picture(upside_down.size());
  for (std::size_t y = 0; y < static_cast<std::size_t>(s.height); ++y) {
    std::memcpy(picture.data() + y * row,
                upside_down.data() + (static_cast<std::size_t>(s.height) - 1 - y) * row, row);
  }
  for (std::size_t i = 3; i < picture.size(); i += 4) picture[i] = 255;
  return picture;
}

}  // namespace shardscope::gui
