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

  static constexpr const char* kLayout = "Watch";
  static constexpr Rect kRoom{0, 0, 1600, 800};
  const Panels preset_{"timeline", "partition", "memory", "inspector"};
  Docks docks_;
};

TEST_F(DocksTest, ALayoutBeginsAsItsPresetSays) {
  frames();
  EXPECT_EQ(docks_.shown(kLayout), preset_);
  EXPECT_LT(left_of("timeline"), left_of("inspector"));
  EXPECT_LT(left_of("partition"), left_of("memory"));
  const ImGuiWindow* inspector = ImGui::FindWindowByName(name_of("inspector").c_str());
  EXPECT_NEAR(inspector->Pos.x + inspector->Size.x, kRoom.w, 1);
  EXPECT_NEAR(inspector->Size.x, 0.21F / 1.21F * kRoom.w, 4);
}

TEST_F(DocksTest, AnOpenedPanelIsATabBesideTheMainPanelAndComesBackToWhereItWasClosed) {
  frames();
  docks_.open(kLayout, "findings");
  EXPECT_EQ(docks_.shown(kLayout).back(), "findings");
  frames();
  ASSERT_NE(node_of("findings"), 0U);
  EXPECT_EQ(node_of("findings"), node_of("timeline"));
  docks_.open(kLayout, "findings");
  EXPECT_EQ(std::ranges::count(docks_.shown(kLayout), "findings"), 1) << "it was open";

  const ImGuiID memory = node_of("memory");
  docks_.close(kLayout, "memory");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"timeline", "partition", "inspector", "findings"}));
  docks_.open(kLayout, "memory");
  frames();
  EXPECT_EQ(node_of("memory"), memory);
}

TEST_F(DocksTest, TheLastPanelStays) {
  frames();
  for (const std::string& panel : preset_) docks_.close(kLayout, panel);
  EXPECT_EQ(docks_.shown(kLayout), Panels{"inspector"});
}

TEST_F(DocksTest, APanelTakesThePlaceOfAnotherOrChangesPlacesWithIt) {
  frames();
  const ImGuiID timeline = node_of("timeline"), memory = node_of("memory");
  docks_.replace(kLayout, "memory", "findings");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"timeline", "partition", "findings", "inspector"}));
  frames();
  EXPECT_EQ(node_of("findings"), memory);

  docks_.replace(kLayout, "timeline", "findings");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"findings", "partition", "timeline", "inspector"}));
  frames();
  EXPECT_EQ(node_of("findings"), timeline);

  docks_.replace(kLayout, "memory", "overview");  // memory is not shown: nothing to take the place of
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"findings", "partition", "timeline", "inspector"}));
}

TEST_F(DocksTest, AResetPutsEveryPanelBack) {
  frames();
  docks_.close(kLayout, "memory");
  docks_.open(kLayout, "findings");
  ImGui::DockBuilderDockWindow(name_of("partition").c_str(), node_of("inspector"));
  frames();
  ASSERT_EQ(node_of("partition"), node_of("inspector"));
  docks_.reset(kLayout);
  EXPECT_EQ(docks_.shown(kLayout), preset_);
  frames();
  EXPECT_NE(node_of("partition"), node_of("inspector"));
  EXPECT_LT(left_of("partition"), left_of("memory"));
}

TEST_F(DocksTest, SettingsKeepWhichPanelsAreShown) {
  docks_.keep_in_settings();
  frames();
  docks_.close(kLayout, "memory");
  docks_.open(kLayout, "findings");
  const std::string kept = ImGui::SaveIniSettingsToMemory();
  EXPECT_NE(kept.find("[Panels][Watch]\ntimeline\npartition\ninspector\nfindings\n\n"), std::string::npos)
      << kept;

  docks_.reset(kLayout);
  // As it was, though something else is shown now; a name that stands twice is one panel.
  ImGui::LoadIniSettingsFromMemory(
      "[Panels][Watch]\nfindings\ntimeline\nfindings\n\n[Panels][Wide]\nmemory\n");
  EXPECT_EQ(docks_.shown(kLayout), (Panels{"findings", "timeline"}));
  EXPECT_EQ(std::string(ImGui::SaveIniSettingsToMemory()).find("Wide"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::gui
