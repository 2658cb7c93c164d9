#include "app/gui/platform/window.h"

#include <GLFW/glfw3.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/gui/model/dropped_files.h"
#include "app/gui/model/export_job.h"
#include "app/gui/model/redraw.h"
#include "app/gui/model/settings_text.h"
#include "app/gui/platform/kept_place.h"
#include "app/gui/platform/pixels.h"
#include "app/gui/platform/png.h"
#include "app/gui/platform/viewports.h"

namespace shardscope::gui {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kLiveFrame = 1.0 / 20;    ///< minimum time between frames for a live run's changes
constexpr double kMotionFrame = 1.0 / 12;  ///< the same for animations
constexpr double kIdleWait = 0.5;          ///< when waiting for input only
constexpr double kDumpInterval = 1.0;
/// Maximum share of one core for drawing changes: four ranks may be training on the same two cores.
constexpr double kDrawShare = 0.15;

/// Requests for a dump by signal. A thread takes them, since only that can wake the window.
struct DumpRequests {
  std::atomic<std::uint64_t> asked{0};
  std::mutex guard;
  bool open = false;  ///< a window may be woken
};
DumpRequests g_dumps;

void take_dump_signals(sigset_t signals) {
  int taken = 0;
  while (sigwait(&signals, &taken) == 0) {
    ++g_dumps.asked;
    const std::scoped_lock lock(g_dumps.guard);
    if (g_dumps.open) glfwPostEmptyEvent();
  }
}

/// While it lives the window is woken by a request.
class WokenByDumps {
 public:
  WokenByDumps() { set(true); }
  ~WokenByDumps() { set(false); }
  WokenByDumps(const WokenByDumps&) = delete;
  WokenByDumps& operator=(const WokenByDumps&) = delete;

 private:
  static void set(bool open) {
    const std::scoped_lock lock(g_dumps.guard);
    g_dumps.open = open;
  }
};

std::string g_glfw_error;
void on_glfw_error(int, const char* text) { g_glfw_error = text; }

/// Path of the settings file; empty without a home directory: settings are not saved.
std::string settings_file() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (config != nullptr && *config == '/')
    folder = config;
  else if (home != nullptr && *home == '/')
    folder = std::filesystem::path(home) / ".config";
  else
    return {};
  folder /= "shardscope";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? std::string() : (folder / "window.ini").string();
}

/// The saved settings. ImGui trusts their contents and may abort: the file has a checksum, and a changed or
/// incomplete one is ignored.
class Settings {
 public:
  Settings() : path_(settings_file()) {
    ImGui::GetIO().IniSavingRate = 1;
    std::ifstream file(path_, std::ios::binary);
    first_run_ = !path_.empty() && !file;
    if (path_.empty() || !file) return;
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    if (const auto text = checked_text(whole)) {
      ImGui::LoadIniSettingsFromMemory(text->data(), text->size());
    } else {
      std::fprintf(stderr, "shardscope: %s is damaged; default layouts are used\n", path_.c_str());
    }
  }
  ~Settings() { save(); }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
  /// No earlier window has saved settings.
  [[nodiscard]] bool first_run() const { return first_run_; }
  void save_if_changed() {
    if (ImGui::GetIO().WantSaveIniSettings) save();
  }

 private:
  void save() {
    ImGui::GetIO().WantSaveIniSettings = false;
    // Failure to save is ignored. The final newline is added by write_state().
    std::string file = with_checksum(ImGui::SaveIniSettingsToMemory() + std::string("\n"));
    file.pop_back();
    if (!path_.empty()) (void)write_state(path_, file);
  }
  std::string path_;
  bool first_run_ = false;
};

struct Input {
  std::vector<KeyPress> keys;
  DroppedFiles dropped;
  Redraw redraw;
};
Input g_input;
void touch() { g_input.redraw.input(); }

/// Our callbacks request a frame, then call ImGui's.
void install_callbacks(GLFWwindow* window) {
  glfwSetWindowFocusCallback(window, [](GLFWwindow* w, int focused) {
    touch();
    ImGui_ImplGlfw_WindowFocusCallback(w, focused);
  });
  glfwSetCursorEnterCallback(window, [](GLFWwindow* w, int entered) {
    touch();
    Viewports::pointer_entered(w, entered != 0);
    ImGui_ImplGlfw_CursorEnterCallback(w, entered);
  });
  glfwSetCursorPosCallback(window, [](GLFWwindow* w, double x, double y) {
    touch();
    Viewports::pointer(w, x, y);
    ImGui_ImplGlfw_CursorPosCallback(w, x, y);
  });
  glfwSetMouseButtonCallback(window, [](GLFWwindow* w, int button, int action, int mods) {
    touch();
    ImGui_ImplGlfw_MouseButtonCallback(w, button, action, mods);
  });
  glfwSetScrollCallback(window, [](GLFWwindow* w, double dx, double dy) {
    touch();
    ImGui_ImplGlfw_ScrollCallback(w, dx, dy);
  });
  glfwSetKeyCallback(window, [](GLFWwindow* w, int key, int scancode, int action, int mods) {
    touch();
    if (action != GLFW_RELEASE) g_input.keys.push_back({key, mods});
    ImGui_ImplGlfw_KeyCallback(w, key, scancode, action, mods);
  });
  glfwSetCharCallback(window, [](GLFWwindow* w, unsigned int c) {
    touch();
    ImGui_ImplGlfw_CharCallback(w, c);
  });
  glfwSetDropCallback(window, [](GLFWwindow*, int count, const char** paths) {
    touch();
    g_input.dropped.take(count, paths);
  });
  glfwSetFramebufferSizeCallback(window, [](GLFWwindow*, int, int) { touch(); });
  glfwSetWindowRefreshCallback(window, [](GLFWwindow*) { touch(); });
  glfwSetWindowContentScaleCallback(window, [](GLFWwindow*, float, float) { touch(); });
}

class Window {
 public:
  /// `place`: null: neither read nor followed.
  Window(const WindowOptions& options, KeptPlace* place) : place_(place) {
    glfwSetErrorCallback(on_glfw_error);
    if (!glfwInit()) throw std::runtime_error("cannot open a display: " + g_glfw_error);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
    glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);  // it appears at its place, and does not jump there
    window_ = glfwCreateWindow(options.width, options.height, "Shardscope", nullptr, nullptr);
    if (window_ == nullptr) {
      glfwTerminate();
      throw std::runtime_error("cannot open a window with OpenGL 3.3: " + g_glfw_error +
                               "; install libgl1-mesa-dri");
    }
    glfwSetWindowSizeLimits(window_, 640, 400, GLFW_DONT_CARE, GLFW_DONT_CARE);
    if (place_ != nullptr && !options.sized) place_->apply(window_);
    glfwShowWindow(window_);
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(1);
    install_callbacks(window_);
    ImGui_ImplGlfw_InitForOpenGL(window_, false);
    ImGui_ImplOpenGL3_Init("#version 330");
    viewports_.emplace(install_callbacks);
  }
  ~Window() {
    viewports_.reset();
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    glfwDestroyWindow(window_);
    glfwTerminate();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] bool closed() const { return glfwWindowShouldClose(window_) != 0; }
  void follow_place(double seconds) {
    if (place_ != nullptr) place_->follow(window_, seconds);
  }
  [[nodiscard]] bool visible() const { return glfwGetWindowAttrib(window_, GLFW_ICONIFIED) == 0; }

  void draw(Frame& frame, AppState& app, const std::string& panel, double seconds) {
    const float scale = std::max(0.5F, screen_scale() * app.text_scale * layout_zoom(app.layout_name));
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    Viewports::follow_pointer(window_);
    ImGuiIO& io = ImGui::GetIO();
    int width = 0;
    int height = 0;
    int window_width = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    glfwGetWindowSize(window_, &window_width, nullptr);
    if (width <= 0 || height <= 0) return;
    viewports_->scale(static_cast<float>(width) / static_cast<float>(std::max(1, window_width)) / scale,
                      scale);
    io.DisplaySize = {static_cast<float>(width) / scale, static_cast<float>(height) / scale};
    io.DisplayFramebufferScale = {scale, scale};
    for (const KeyPress& key : g_input.keys) frame.press(key.code, key.modifiers);
    g_input.keys.clear();
    if (std::string title = app.title(); title != title_) {
      glfwSetWindowTitle(window_, title.c_str());
      title_ = std::move(title);
    }
    ImDrawData* const data = frame.build(app, panel, seconds);
    glViewport(0, 0, width, height);
    ImGui_ImplOpenGL3_RenderDrawData(data);
    picture(frame, width, height, scale);
    viewports_->draw(window_);
    glfwSwapBuffers(window_);
  }

 private:
  /// The desktop's scale. Where it has none (X11 without Xft.dpi), by screen resolution: at 4K text would be
  /// too small.
  [[nodiscard]] float screen_scale() const {
    float content = 1;
    glfwGetWindowContentScale(window_, &content, nullptr);
    GLFWmonitor* const monitor = glfwGetPrimaryMonitor();
    const GLFWvidmode* const mode = monitor != nullptr ? glfwGetVideoMode(monitor) : nullptr;
    if (content > 1.01F || mode == nullptr || glfwGetPlatform() != GLFW_PLATFORM_X11) return content;
    return mode->width >= 5000 ? 2.5F : mode->width >= 3200 ? 1.75F : mode->width >= 2500 ? 1.25F : 1.0F;
  }
  /// Writes a picture of the last frame, once the dialog that requested it has faded out.
  void picture(Frame& frame, int width, int height, float scale) {
    UiState& ui = frame.workspace().ui();
    if (!ui.picture) return;
    g_input.redraw.input();
    constexpr int kFade = 3;      // frames until a dialog has closed
    constexpr int kLongest = 60;  // frames at most: playback never stops moving
    ++waited_;
    if (waited_ < kFade || (frame.moving() && waited_ < kLongest)) return;
    waited_ = 0;
    const UiState::Picture wanted = *std::exchange(ui.picture, std::nullopt);
    PixelRect part{0, 0, width, height};
    if (!wanted.panel.empty()) {
      const auto& placed = frame.workspace().placed();
      const auto found = std::ranges::find(placed, wanted.panel, &PlacedForDump::name);
      if (found == placed.end()) {
        ui.say("No picture: this panel is not shown", true);
        return;
      }
      if (found->apart) {
        ui.say("No picture: the panel is in a window of its own", true);
        return;
      }
      // With viewports enabled ImGui positions are desktop coordinates.
      const ImVec2 at = ImGui::GetMainViewport()->Pos;
      part = pixels_of(found->rect, at.x, at.y, scale, width, height);
    }
    if (part.w <= 0 || part.h <= 0) {
      ui.say("No picture: the panel has no room", true);
      return;
    }
    std::vector<std::uint8_t> rows(static_cast<std::size_t>(part.w) * static_cast<std::size_t>(part.h) * 4);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(part.x, height - part.y - part.h, part.w, part.h, GL_RGBA, GL_UNSIGNED_BYTE, rows.data());
    try {
      refuse_target(wanted.path);
      write_png(wanted.path, part.w, part.h, top_first(rows, part.w, part.h));
      ui.say("Saved " + wanted.path);
    } catch (const std::exception& failed) {
      ui.say(std::string("No picture: ") + failed.what(), true);
    }
  }
  KeptPlace* place_ = nullptr;
  std::string title_;
  int waited_ = 0;  ///< frames since the request
  GLFWwindow* window_ = nullptr;
  std::optional<Viewports> viewports_;
};

/// True: it is open.
bool open(AppState& app, Frame& frame, const AppState::OpenRequest& request) {
  const std::string problem = app.open(request);
  if (!problem.empty()) {
    frame.workspace().ui().say(problem, true);
  } else {
    if (request.second) app.set_layout("Compare");
    if (!request.temporary) frame.workspace().opened(request);
    frame.workspace().ui().say({});
  }
  g_input.redraw.input();
  return problem.empty();
}

/// Opens recordings dropped onto the window, a second one for comparison, and other open
/// requests.
void open_what_was_asked(AppState& app, Frame& frame) {
  if (!g_input.dropped.empty()) {
    const std::string said =
        g_input.dropped.open([&](const AppState::OpenRequest& request) { return open(app, frame, request); });
    if (!said.empty()) frame.workspace().ui().say(said);
  }
  if (app.open_request) (void)open(app, frame, *std::exchange(app.open_request, std::nullopt));
}

/// Searches between two frames for a short time, so that input is handled in the next frame. True while there
/// is more to search.
bool search(AppState& app) {
  const AppState::Turn turn = app.turn();
  return app.find.advance(app, std::chrono::milliseconds(3));
}

class Dumper {
 public:
  explicit Dumper(std::string path) : path_(std::move(path)) {}
  /// True: a request is to be answered after the next events.
  bool update(const AppState& app, Frame& frame, Clock::time_point now) {
    if (path_.empty()) return false;
    // What was pressed before a request is received and drawn first.
    const std::uint64_t asked = std::exchange(seen_, g_dumps.asked.load());
    const bool answers = asked != answered_ && !g_input.redraw.pending();
    write(app, frame, now, answers ? asked : answered_);
    return seen_ != answered_;
  }

 private:
  void write(const AppState& app, Frame& frame, Clock::time_point now, std::uint64_t asked) {
    const bool answers = asked != answered_;
    if (!answers && Seconds(now - last_).count() < kDumpInterval) return;
    if (answers) answered_ = asked;
    last_ = now;
    const AppState::Turn turn = app.turn();
    std::vector<PlacedForDump> placed = frame.workspace().placed();
    placed.push_back({"requests", {}, {std::to_string(answered_)}});
    std::string json = state_json(app, placed, frame.count());
    if (json == written_) return;
    if (!write_state(path_, json) && !complained_) {
      complained_ = true;
      std::fprintf(stderr, "shardscope: cannot write the state to %s\n", path_.c_str());
    }
    written_ = std::move(json);
  }

  std::string path_, written_;
  std::uint64_t seen_ = 0, answered_ = 0;  ///< requests
  Clock::time_point last_{};
  bool complained_ = false;
};

}  // namespace

void accept_dump_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every later thread
  std::thread(take_dump_signals, signals).detach();
}

bool have_display() {
  const char* const x11 = std::getenv("DISPLAY");
  const char* const wayland = std::getenv("WAYLAND_DISPLAY");
  return (x11 != nullptr && *x11 != 0) || (wayland != nullptr && *wayland != 0);
}

int run_window(AppState& app, const WindowOptions& options) {
  Frame frame;
  KeptPlace place;
  Settings settings;
  if (!app.start_page) frame.workspace().opened({app.run->source(), {}, false});
  if (settings.first_run()) frame.workspace().ui().say("New here? Menu Help, Tour on a sample run");
  const Clock::time_point start = Clock::now();
  Clock::time_point last_draw{};
  double draw_cost = 0;
  FrameTimes between;  // reading, analysis and search in the turn before a frame, which also delay input
  if (options.frame_stats) frame.measure_parts();
  bool changed = true;
  {
    // A panel alone is a smaller window beside the whole one, and leaves that one's place as it is.
    Window window(options, options.panel.empty() || options.panel == "workspace" ? &place : nullptr);
    Dumper dumper(options.state_dump);
    const WokenByDumps woken;
    while (!window.closed()) {
      Clock::time_point now = Clock::now();
      if (app.quit) break;
      const double began = thread_cpu_ms();
      open_what_was_asked(app, frame);
      if (options.close_after_s > 0 && Seconds(now - start).count() > options.close_after_s) break;
      changed |= app.run->poll(std::chrono::microseconds(4000));
      if (app.other) changed |= app.other->poll(std::chrono::microseconds(2000));
      changed |= app.tick(Seconds(now - start).count());
      const bool searching = search(app) || app.breaks.searching();
      changed |= searching;
      const double between_ms = thread_cpu_ms() - began;
      const double since = Seconds(now - last_draw).count();
      const double live_gap = std::max(kLiveFrame, draw_cost / kDrawShare);
      const bool due = g_input.redraw.pending() || (changed && since >= live_gap) ||
                       (frame.moving() && since >= std::max(kMotionFrame, live_gap)) ||
                       (frame.again_s() && since >= *frame.again_s());
      if (due && window.visible()) {
        if (options.frame_stats) between.add(static_cast<float>(between_ms));
        window.draw(frame, app, options.panel, Seconds(now - start).count());
        if (frame.count() == 1 && !frame.font_problem().empty()) {
          std::fprintf(stderr, "shardscope: %s\n", frame.font_problem().c_str());
        }
        last_draw = Clock::now();
        draw_cost = 0.8 * draw_cost + 0.2 * Seconds(last_draw - now).count();
        g_input.redraw.drawn(frame.took_input());
        changed = false;
      }
      const bool asked = dumper.update(app, frame, Clock::now());
      window.follow_place(Seconds(Clock::now() - start).count());
      settings.save_if_changed();
      double wait = kIdleWait;
      const auto receives = [](const Session& run) {
        return run.live() && run.link() != collector::Viewer::Link::ended;
      };
      if (receives(*app.run) || (app.other && receives(*app.other))) wait = kLiveFrame;
      // The analysis thread does not wake this one.
      if (!app.run->partial().empty() || (app.other && !app.other->partial().empty()))
        wait = std::min(wait, kLiveFrame);
      if (changed) wait = std::min(wait, live_gap);
      if (searching || asked || app.run->reading()) wait = 0;
      if (frame.moving()) wait = std::min(wait, kMotionFrame);
      if (frame.again_s()) wait = std::min(wait, *frame.again_s());
      if (g_input.redraw.pending())
        glfwPollEvents();
      else
        glfwWaitEventsTimeout(std::max(0.001, wait));
    }
  }
  if (options.frame_stats) {
    const auto line = [](const char* what, const FrameTimes& times) {
      std::printf("%s: median %.3f, p95 %.3f, max %.3f\n", what, static_cast<double>(times.quantile(0.5)),
                  static_cast<double>(times.quantile(0.95)), static_cast<double>(times.quantile(1)));
    };
    std::printf("frames %llu, ", static_cast<unsigned long long>(frame.count()));
    line("build CPU ms", frame.times());
    line("between frames, CPU ms", between);
    std::printf("%s", frame.times().parts_text().c_str());
  }
  return 0;
}

}  // namespace shardscope::gui
