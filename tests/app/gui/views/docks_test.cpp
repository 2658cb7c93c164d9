// Where panels are: opened, closed, exchanged, put back, and kept in the settings.
#include "app/gui/views/docks.h"

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardscope::gui {
namespace {

using Panels = std::vector<std::string>;

class DocksTest : public ::testing::Test {
 protected:
  DocksTest() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    io.DisplaySize = {kRoom.w, kRoom.h};
  }
  ~DocksTest() override { ImGui::DestroyContext(); }

  void frames(int count = 3) {
    for (; count > 0; --count) {
      ImGui::NewFrame();
      ImGui::SetNextWindowPos({0, 0});
      ImGui::SetNextWindowSize({kRoom.w, kRoom.h});
      ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
      ImGui::Begin("host", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking);
      docks_.submit(kLayout, kRoom);
      ImGui::End();
      ImGui::PopStyleVar();
      for (const std::string& panel : Panels(docks_.shown(kLayout))) {
        ImGui::Begin(name_of(panel).c_str());
        ImGui::End();
      }
      ImGui::EndFrame();
    }
  }
  static std::string name_of(const std::string& panel) { return Docks::window_name(kLayout, panel, panel); }
  static ImGuiID node_of(const std::string& panel) {
    const ImGuiWindow* window = ImGui::FindWindowByName(name_of(panel).c_str());
    return window != nullptr ? window->DockId : 0;
  }
  static float left_of(const std::string& panel) {
    return ImGui::FindWindowByName(name_of(panel).c_str())->Pos.x;
  }

  static float top_of(const std::string& panel) {
    return ImGui::FindWindowByName(name_of(panel).c_str())->Pos.y;
  }

  static constexpr const char* kLayout = "Watch";
  static constexpr Rect kRoom{0, 0, 1600, 800};
  const Panels preset_{"timeline", "partition", "memory", "findings", "overview"};
  Docks docks_;
};

TEST_F(DocksTest, ALayoutBeginsAsItsPresetSays) {
  frames();
  EXPECT_EQ(docks_.shown(kLayout), preset_);
  EXPECT_LT(left_of("timeline"), left_of("findings"));
  EXPECT_LT(left_of("partition"), left_of("memory"));
  const ImGuiWindow* right = ImGui::FindWindowByName(name_of("findings").c_str());
  EXPECT_NEAR(right->Pos.x + right->Size.x, kRoom.w, 1);
  EXPECT_NEAR(right->Size.x, 0.30F / 1.30F * kRoom.w, 4);
}

TEST_F(DocksTest, AnOpenedPanelIsATabBesideTheMainPanelAndComesBackToWhereItWasClosed) {
  frames();
  docks_.open(kLayout, "inspector");
  EXPECT_EQ(docks_.shown(kLayout).back(), "inspector");
  frames();
  ASSERT_NE(node_of("inspector"), 0U);
  EXPECT_EQ(node_of("inspector"), node_of("timeline"));
  docks_.open(kLayout, "inspector");
  EXPECT_EQ(std::ranges::count(docks_.shown(kLayout), "inspector"), 1) << "it was open";

  const ImGuiID memory = node_of("memory");
  docks_.close(kLayout, "memory");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"timeline", "partition", "findings", "overview", "inspector"}));
  docks_.open(kLayout, "memory");
  frames();
  EXPECT_EQ(node_of("memory"), memory);
}

TEST_F(DocksTest, APanelIsOpenedBesideTheOneThatIsNamed) {
  frames();
  docks_.open(kLayout, "inspector", "overview");
  docks_.open(kLayout, "stepper", "compare");  // which is not shown
  frames();
  EXPECT_EQ(node_of("inspector"), node_of("overview"));
  EXPECT_EQ(node_of("stepper"), node_of("timeline"));
}

TEST_F(DocksTest, APanelIsOpenedBesideOneThatWasNotDrawnYet) {
  ImGui::NewFrame();
  ImGui::Begin("host", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking);
  docks_.submit(kLayout, kRoom);
  ImGui::End();
  docks_.open(kLayout, "inspector", "overview");
  ImGui::EndFrame();
  frames();
  ASSERT_NE(node_of("inspector"), 0U);
  EXPECT_EQ(node_of("inspector"), node_of("overview"));
}

TEST_F(DocksTest, AnOwnLayoutHasThePanelsWhereTheyWereAndIsForgotten) {
  frames();
  docks_.close(kLayout, "memory");
  frames();
  EXPECT_FALSE(docks_.save_as(kLayout, "Step").empty()) << "a layout of the program";
  EXPECT_FALSE(docks_.save_as(kLayout, " ").empty());
  EXPECT_EQ(docks_.save_as(kLayout, "Mine"), "");
  EXPECT_EQ(docks_.shown("Mine"), docks_.shown(kLayout));
  EXPECT_EQ(docks_.own_names(), Panels{"Mine"});
  docks_.forget("Mine");
  EXPECT_TRUE(docks_.own_names().empty());
}

TEST_F(DocksTest, TheLastPanelStays) {
  frames();
  for (const std::string& panel : preset_) docks_.close(kLayout, panel);
  EXPECT_EQ(docks_.shown(kLayout), Panels{"overview"});
}

TEST_F(DocksTest, APanelTakesThePlaceOfAnotherOrChangesPlacesWithIt) {
  frames();
  const ImGuiID timeline = node_of("timeline"), memory = node_of("memory");
  docks_.replace(kLayout, "memory", "inspector");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"timeline", "partition", "inspector", "findings", "overview"}));
  frames();
  EXPECT_EQ(node_of("inspector"), memory);

  docks_.replace(kLayout, "timeline", "inspector");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"inspector", "partition", "timeline", "findings", "overview"}));
  frames();
  EXPECT_EQ(node_of("inspector"), timeline);

  EXPECT_EQ(node_of("timeline"), memory);

  const ImGuiID partition = node_of("partition");
  docks_.replace(kLayout, "partition", "timeline");
  frames();
  EXPECT_EQ(node_of("timeline"), partition);
  EXPECT_EQ(node_of("partition"), memory);
  EXPECT_LT(left_of("timeline"), left_of("partition")) << "and both are still docked";
  docks_.replace(kLayout, "partition", "timeline");
  frames();

  docks_.replace(kLayout, "memory", "stepper");  // memory is not shown: nothing to take the place of
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"inspector", "partition", "timeline", "findings", "overview"}));
}

TEST_F(DocksTest, AResetPutsEveryPanelBack) {
  frames();
  docks_.close(kLayout, "memory");
  docks_.open(kLayout, "inspector");
  ImGui::DockBuilderDockWindow(name_of("partition").c_str(), node_of("findings"));
  frames();
  ASSERT_EQ(node_of("partition"), node_of("findings"));
  docks_.reset(kLayout);
  EXPECT_EQ(docks_.shown(kLayout), preset_);
  frames();
  EXPECT_NE(node_of("partition"), node_of("findings"));
  EXPECT_LT(left_of("partition"), left_of("memory"));
}

TEST_F(DocksTest, ACommandMovesAPanelOverItsNeighbourOutOfTheTabsAndToTheEdge) {
  frames();
  constexpr PanelMove kLeft{PanelMove::What::over, Side::left}, kUp{PanelMove::What::over, Side::up};
  // Over the neighbour on that side: a tab of its place.
  EXPECT_EQ(docks_.move(kLayout, "memory", kLeft), "");
  frames(5);
  ASSERT_NE(node_of("memory"), 0U);
  EXPECT_EQ(node_of("memory"), node_of("partition"));
  // Out of the tabs, into the upper half.
  EXPECT_EQ(docks_.move(kLayout, "memory", {PanelMove::What::split, Side::up}), "");
  frames(5);
  EXPECT_NE(node_of("memory"), node_of("partition"));
  EXPECT_LT(top_of("memory"), top_of("partition"));
  EXPECT_EQ(left_of("memory"), left_of("partition"));
  EXPECT_NE(docks_.move(kLayout, "memory", {PanelMove::What::split, Side::up}), "") << "it is alone";
  // Until it is at the edge of the window, over its whole length.
  EXPECT_EQ(docks_.move(kLayout, "memory", kLeft), "");
  frames(5);
  EXPECT_EQ(left_of("memory"), 0);
  EXPECT_NEAR(ImGui::FindWindowByName(name_of("memory").c_str())->DockNode->Size.y, kRoom.h, 1);
  EXPECT_EQ(docks_.move(kLayout, "memory", kLeft), "The panel is at that edge");
  // The main place is never empty: the panel there comes into it.
  const ImGuiID main = node_of("timeline");
  EXPECT_EQ(docks_.move(kLayout, "timeline", kLeft), "");
  frames(5);
  EXPECT_EQ(node_of("memory"), main);
  EXPECT_EQ(left_of("timeline"), 0);
  EXPECT_EQ(docks_.move(kLayout, "absent", kUp), "The panel is not shown");
}

TEST_F(DocksTest, ACommandTearsAPanelOffAndDocksItAgain) {
  frames();
  constexpr PanelMove kTearOff{PanelMove::What::tear_off, {}};
  EXPECT_EQ(docks_.move(kLayout, "memory", kTearOff), "");
  frames(4);
  const ImGuiWindow* const memory = ImGui::FindWindowByName(name_of("memory").c_str());
  EXPECT_EQ(memory->DockNode, nullptr);
  const float left = memory->Pos.x, width = memory->SizeFull.x;
  EXPECT_EQ(docks_.move(kLayout, "memory", {PanelMove::What::over, Side::left}), "");
  EXPECT_EQ(docks_.move(kLayout, "memory", {PanelMove::What::resize, Side::right}), "");
  frames();
  EXPECT_LT(memory->Pos.x, left);
  EXPECT_GT(memory->SizeFull.x, width);
  EXPECT_EQ(docks_.move(kLayout, "memory", kTearOff), "");
  frames(4);
  EXPECT_NE(memory->DockNode, nullptr);
}

TEST_F(DocksTest, APanelInAWindowOfItsOwnComesToThePlaceOfTheOneItIsChosenInsteadOf) {
  frames();
  EXPECT_EQ(docks_.move(kLayout, "memory", {PanelMove::What::tear_off, {}}), "");
  frames(4);
  ASSERT_EQ(node_of("memory"), 0U);
  const ImGuiID partition = node_of("partition");
  docks_.replace(kLayout, "partition", "memory");
  frames();
  EXPECT_EQ(node_of("memory"), partition);
}

TEST_F(DocksTest, ACommandWhileAPanelIsAboutToBeDockedIsNotCarriedOutLater) {
  frames();
  constexpr PanelMove kTearOff{PanelMove::What::tear_off, {}};
  EXPECT_EQ(docks_.move(kLayout, "memory", kTearOff), "");
  frames(4);
  const ImGuiWindow* const memory = ImGui::FindWindowByName(name_of("memory").c_str());
  EXPECT_EQ(docks_.move(kLayout, "memory", kTearOff), "");
  frames(1);
  ASSERT_EQ(memory->DockNode, nullptr) << "it is docked in the next frame";
  EXPECT_EQ(docks_.move(kLayout, "memory", kTearOff), "");
  frames(4);
  ASSERT_NE(memory->DockNode, nullptr);
  EXPECT_EQ(docks_.move(kLayout, "memory", kTearOff), "");
  frames(6);
  EXPECT_EQ(memory->DockNode, nullptr) << "it does not come back by itself";
}

TEST_F(DocksTest, ACommandMovesTheBorderOfAPanel) {
  frames();
  const auto size = [](const std::string& panel) {
    return ImGui::FindWindowByName(name_of(panel).c_str())->DockNode->Size;
  };
  const ImVec2 memory = size("memory"), partition = size("partition");
  EXPECT_EQ(docks_.move(kLayout, "memory", {PanelMove::What::resize, Side::right}), "");
  frames();
  EXPECT_GT(size("memory").x, memory.x);
  EXPECT_NEAR(size("memory").x + size("partition").x, memory.x + partition.x, 1);
  EXPECT_EQ(docks_.move(kLayout, "memory", {PanelMove::What::resize, Side::up}), "");
  frames();
  EXPECT_LT(size("memory").y, memory.y);
}

TEST_F(DocksTest, SettingsKeepWhichPanelsAreShown) {
  docks_.keep_in_settings();
  frames();
  docks_.close(kLayout, "memory");
  docks_.open(kLayout, "inspector");
  const std::string kept = ImGui::SaveIniSettingsToMemory();
  EXPECT_NE(kept.find("[Panels][Watch]\ntimeline\npartition\nfindings\noverview\ninspector\n\n"),
            std::string::npos)
      << kept;

  docks_.reset(kLayout);
  // As it was, though something else is shown now; a name that stands twice is one panel.
  ImGui::LoadIniSettingsFromMemory(
      "[Panels][Watch]\nfindings\ntimeline\nfindings\n\n[Panels][Wide]\nmemory\n");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"findings", "timeline"}));
  EXPECT_EQ(docks_.own_names(), Panels{"Wide"}) << "no layout of the program: the user's own";
}

}  // namespace
}  // namespace shardscope::gui
