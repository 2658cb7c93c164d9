// A click where the pointer has just arrived: it reaches what takes a press only where the pointer already
// was.
#include "app/gui/views/held_press.h"

#include <gtest/gtest.h>
#include <imgui_internal.h>

namespace shardscope::gui {
namespace {

class Presses : public ::testing::Test {
 protected:
  Presses() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {800, 600};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    io.Fonts->AddFontDefault();
  }
  ~Presses() override { ImGui::DestroyContext(); }

  /// A frame with an item of 100 x 100 pixels at (100, 100), as a plot is one. What happened to it in the
  /// frame.
  struct Seen {
    bool pressed = false, released = false;
    float wheel = 0;  ///< while the pointer is over it
  };
  Seen frame() {
    ImGui::GetIO().DeltaTime = 1.0F / 60;
    presses_.release();
    presses_.hold();
    ImGui::NewFrame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({800, 600});
    ImGui::Begin("window", nullptr, ImGuiWindowFlags_NoDecoration);
    ImGui::SetCursorScreenPos({100, 100});
    ImGui::SetNextItemAllowOverlap();
    ImGui::InvisibleButton("##plot", {100, 100});
    const Seen seen{ImGui::IsItemActivated(), ImGui::IsItemDeactivated(),
                    ImGui::IsItemHovered() ? ImGui::GetIO().MouseWheel : 0};
    ImGui::End();
    ImGui::EndFrame();
    return seen;
  }
  static void move(float x, float y) { ImGui::GetIO().AddMousePosEvent(x, y); }
  static void button(bool down) { ImGui::GetIO().AddMouseButtonEvent(0, down); }

  HeldPress presses_;
};

TEST_F(Presses, APressAfterAMoveInOneFrameIsTakenInTheNext) {
  move(20, 20);
  frame();
  move(150, 150);
  button(true);
  EXPECT_FALSE(frame().pressed);
  EXPECT_TRUE(presses_.holds());
  EXPECT_TRUE(frame().pressed);
  EXPECT_FALSE(presses_.holds());
}

TEST_F(Presses, AWholeClickKeepsItsOrder) {
  move(20, 20);
  frame();
  move(150, 150);
  button(true);
  button(false);
  move(400, 400);
  frame();
  EXPECT_TRUE(frame().pressed);
  EXPECT_TRUE(frame().released);
  for (int i = 0; i < 3; ++i) frame();
  EXPECT_EQ(ImGui::GetIO().MousePos.x, 400);
}

TEST_F(Presses, WithoutAMoveAPressIsTakenAtOnce) {
  move(150, 150);
  frame();
  frame();
  move(150, 150);  // a pointer at rest may be reported anew
  button(true);
  EXPECT_TRUE(frame().pressed);
}

TEST_F(Presses, TheWheelWaitsLikewise) {
  move(20, 20);
  frame();
  move(150, 150);
  ImGui::GetIO().AddMouseWheelEvent(0, -1);
  EXPECT_EQ(frame().wheel, 0);
  EXPECT_EQ(frame().wheel, -1);
}

// ImGui takes one change of a key in each frame: the move is still in its queue when the press comes back.
TEST_F(Presses, OfABurstWithKeysThePressComesAfterTheMove) {
  move(20, 20);
  frame();
  frame();
  for (const bool down : {true, false, true, false}) ImGui::GetIO().AddKeyEvent(ImGuiKey_Escape, down);
  move(150, 150);
  button(true);
  button(false);
  bool pressed = false;
  for (int i = 0; i < 10; ++i) {
    const bool now = frame().pressed;
    if (now) {
      EXPECT_EQ(ImGui::GetIO().MouseClickedPos[0].x, 150);
    }
    pressed |= now;
  }
  EXPECT_TRUE(pressed);
  EXPECT_FALSE(presses_.holds());
}

TEST_F(Presses, APressIsOnlyHeldForOneFrameWhileThePointerMovesOn) {
  move(20, 20);
  frame();
  move(150, 150);
  button(true);
  frame();
  move(151, 150);
  EXPECT_TRUE(frame().pressed);
}

}  // namespace
}  // namespace shardscope::gui
