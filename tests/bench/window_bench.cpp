// window_bench FILE [1600x900] [layout] [rounds=4]: what the frames of a window cost, panel by panel, while a
// script zooms, pans, clicks and steps through a recording: CPU time of the thread that draws, without the GL
// driver and without a display. The loop is that of the window: what was received, analysis and search
// between two frames.
#include <imgui.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "app/gui/model/frame_times.h"
#include "app/gui/platform/frame.h"

namespace {

using namespace shardscope::gui;

constexpr float kFrame_s = 1.0F / 60;
constexpr int kPageUp = 266, kPageDown = 267;

class Script {
 public:
  Script(AppState& app, float width, float height) : app_(app) {
    ImGuiIO& io = ImGui::GetIO();
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;
    io.DisplaySize = {width, height};
    frame_.measure_parts();
  }
  void play(int rounds) {
    frames("first", 1);
    frames("open", 60);
    if (rounds > 0) {  // the figures are of what follows
      frame_.times().clear();
      between_.clear();
    }
    for (int round = 0; round < rounds; ++round) {
      key("whole run", 'F');
      const float x = std::uniform_real_distribution<float>(0.3F, 0.9F)(random_);
      for (int i = 0; i < 60; ++i) wheel("zoom in", x, 1);
      for (int i = 0; i < 20; ++i) drag("pan", -15);
      for (int i = 0; i < 30; ++i) wheel("zoom out", x, -1);
      for (int i = 0; i < 10; ++i) click("click", std::uniform_real_distribution<float>(0.3F, 0.9F)(random_));
      for (int i = 0; i < 10; ++i) key("next step", kPageDown);
      for (int i = 0; i < 10; ++i) key("previous step", kPageUp);
      for (int i = 0; i < 10; ++i) key("next event", key::kRight);
    }
    for (int i = 0; i < 5 * rounds; ++i) {  // anywhere in the run
      const auto end = static_cast<double>(app_.store().end_ns());
      app_.jump_to(static_cast<std::int64_t>(std::uniform_real_distribution<double>(0, end)(random_)));
      frames("jump", 4);
    }
  }
  void print() {
    const auto line = [](const char* what, const FrameTimes& times) {
      std::printf("%-16s %6zu frames: median %.3f, p95 %.3f, max %.3f ms\n", what, times.size(),
                  static_cast<double>(times.quantile(0.5)), static_cast<double>(times.quantile(0.95)),
                  static_cast<double>(times.quantile(1)));
    };
    for (const auto& [what, times] : by_action_) line(what.c_str(), times);
    line("all", frame_.times());
    line("between frames", between_);
    std::printf("%s", frame_.times().parts_text().c_str());
  }

 private:
  void frames(const std::string& what, int count) {
    for (; count > 0; --count) {
      double began = thread_cpu_ms();
      (void)app_.run->poll(std::chrono::microseconds(4000));
      (void)app_.tick(seconds_);
      {
        const AppState::Turn turn = app_.turn();
        (void)app_.find.advance(app_, std::chrono::milliseconds(3));
      }
      between_.add(static_cast<float>(thread_cpu_ms() - began));
      ImGui::GetIO().DeltaTime = kFrame_s;
      began = thread_cpu_ms();
      (void)frame_.build(app_, "workspace", seconds_ += static_cast<double>(kFrame_s));
      by_action_[what].add(static_cast<float>(thread_cpu_ms() - began));
    }
  }
  [[nodiscard]] ImVec2 in_lanes(float x) {
    for (const PlacedForDump& panel : frame_.workspace().placed())
      if (panel.name == "timeline")
        return {panel.rect.x + x * panel.rect.w, panel.rect.y + 0.5F * panel.rect.h};
    return {};
  }
  void wheel(const std::string& what, float x, float notches) {
    const ImVec2 at = in_lanes(x);
    ImGui::GetIO().AddMousePosEvent(at.x, at.y);
    ImGui::GetIO().AddMouseWheelEvent(0, notches);
    frames(what, 2);
  }
  void drag(const std::string& what, float by) {
    const ImVec2 at = in_lanes(0.6F);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(at.x, at.y);
    io.AddMouseButtonEvent(0, true);
    frames(what, 1);
    io.AddMousePosEvent(at.x + by, at.y);
    frames(what, 1);
    io.AddMouseButtonEvent(0, false);
    frames(what, 2);
  }
  void click(const std::string& what, float x) {
    const ImVec2 at = in_lanes(x);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(at.x, at.y);
    io.AddMouseButtonEvent(0, true);
    frames(what, 1);
    io.AddMouseButtonEvent(0, false);
    frames(what, 4);
  }
  void key(const std::string& what, int code) {
    frame_.press(code);
    frames(what, 4);
  }

  AppState& app_;
  Frame frame_;  ///< makes ImGui's context
  std::mt19937 random_{1};
  double seconds_ = 0;
  FrameTimes between_;
  std::map<std::string, FrameTimes> by_action_;
};

}  // namespace

int main(int argc, char** argv) {
  int width = 1600, height = 900;
  if (argc < 2 || (argc > 2 && std::sscanf(argv[2], "%dx%d", &width, &height) != 2)) {
    std::fprintf(stderr, "usage: window_bench FILE [1600x900] [layout] [rounds]\n");
    return 2;
  }
  try {
    AppState app;
    app.run = Session::open_file(argv[1]);
    if (argc > 3) app.set_layout(argv[3]);
    auto script = std::make_unique<Script>(app, static_cast<float>(width), static_cast<float>(height));
    script->play(argc > 4 ? std::atoi(argv[4]) : 4);
    script->print();
    return 0;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "window_bench: %s\n", failed.what());
    return 1;
  }
}
