// The window is never left half drawn: after whatever the user did, one more frame would show nothing else.
#include "app/gui/model/redraw.h"

#include <gtest/gtest.h>

#include <utility>

#include "app/gui/platform/frame.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

TEST(Redraw, OwesAFrameAfterEachThatTookInputIn) {
  Redraw redraw;
  while (redraw.pending()) redraw.drawn(false);
  redraw.input();
  redraw.drawn(true);  // a press
  redraw.drawn(true);  // its release, which waited
  EXPECT_TRUE(redraw.pending());
  redraw.drawn(false);
  EXPECT_FALSE(redraw.pending());
}

/// A window without a display: frames are drawn while any is owed.
class Headless : public ::testing::Test {
 protected:
  Headless() {
    app_.run = std::make_unique<Session>(store::make_synthetic_store());
    app_.run->settle();
    ImGui::GetIO().BackendFlags |=
        ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;
    ImGui::GetIO().DisplaySize = {1280, 720};
  }
  /// What is on the screen when nothing is owed any more.
  std::vector<unsigned char> settle() {
    for (int i = 0; i < 30 && redraw_.pending(); ++i) {
      ImGui::GetIO().DeltaTime = 1.0F / 60;
      ImGui::GetIO().MouseDown[0] = std::exchange(pressed_, false);
      const ImDrawData* data = frame_.build(app_, "workspace", 0);
      redraw_.drawn(frame_.took_input());
      shown_.clear();
      for (int list = 0; list < data->CmdListsCount; ++list) {
        const ImVector<ImDrawVert>& vertices = data->CmdLists[list]->VtxBuffer;
        const auto* bytes = reinterpret_cast<const unsigned char*>(vertices.Data);
        shown_.insert(shown_.end(), bytes, bytes + vertices.size_in_bytes());
      }
    }
    EXPECT_FALSE(redraw_.pending()) << "it draws on and on";
    return shown_;
  }
  std::vector<unsigned char> another_frame() {
    redraw_.input();
    return settle();
  }
  void move_to(const char* panel, float share_x, float share_y) {
    for (const PlacedForDump& placed : frame_.workspace().placed()) {
      if (placed.name != panel) continue;
      ImGui::GetIO().MousePos = {placed.rect.x + placed.rect.w * share_x,
                                 placed.rect.y + placed.rect.h * share_y};
      redraw_.input();
    }
  }
  /// A press and a release before the next frame: as the window system's layer hands them on, that frame sees
  /// the button down and the one after it sees it up.
  void click() {
    pressed_ = true;
    redraw_.input();
    redraw_.input();
  }
  AppState app_;
  Frame frame_;
  Redraw redraw_;
  bool pressed_ = false;
  std::vector<unsigned char> shown_;
};

TEST_F(Headless, AClickWithinOneSlowFrameIsShownWithoutAnotherMoveOfThePointer) {
  settle();
  move_to("partition", 0.5F, 0.3F);
  const auto before = settle();
  click();
  const auto after = settle();
  ASSERT_EQ(app_.selection.kind, SelectionKind::param);
  EXPECT_NE(after, before);
  EXPECT_TRUE(another_frame() == after) << "the selection is not shown in every panel";
}

TEST_F(Headless, AClickOnTheStepsIsFollowedByTheTimeUnderThePointer) {
  settle();
  move_to("steps", 0.14F, 0.5F);
  settle();
  click();
  const auto after = settle();
  ASSERT_EQ(app_.selection.kind, SelectionKind::step);
  EXPECT_TRUE(app_.hover_ns.has_value());
  EXPECT_TRUE(another_frame() == after) << "the line under the pointer appears with its next move";
}

TEST_F(Headless, AKeyToo) {
  settle();
  frame_.press('2');
  redraw_.input();
  const auto after = settle();
  EXPECT_EQ(app_.layout_name, "Step");
  EXPECT_TRUE(another_frame() == after);
}

TEST_F(Headless, ARecordingThatIsNotPlayedStaysWhereItIs) {
  frame_.press('2');  // the Step layout
  redraw_.input();
  settle();
  ASSERT_EQ(app_.layout_name, "Step");
  app_.cursor_ns = app_.store().end_ns() / 2;
  const auto at = app_.cursor_ns;
  for (int i = 0; i < 5; ++i) {
    ImGui::GetIO().DeltaTime = 0.1F;
    frame_.build(app_, "workspace", 0.1 * (i + 1));
    EXPECT_EQ(app_.cursor_ns, at);
    EXPECT_FALSE(frame_.moving()) << "nothing moves by itself";
  }
}

}  // namespace
}  // namespace shardscope::gui
