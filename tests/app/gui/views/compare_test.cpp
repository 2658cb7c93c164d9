// The Compare panel of two runs, by pointer: rows of its tables, and the picture of two aligned steps.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "app/gui/model/names.h"
#include "app/gui/views/compared_tables.h"
#include "tests/app/gui/written.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

class ComparePanel : public ::testing::Test {
 protected:
  ComparePanel() {
    app_.run = std::make_unique<Session>(store::make_synthetic_store());
    app_.other = std::make_unique<Session>(store::make_synthetic_store());
    app_.run->settle();
    app_.other->settle();
    app_.place_once();
  }
  void wheel(Written& panel, ImVec2 at, float notches) {
    panel.point_at(at);
    ImGui::GetIO().AddMouseWheelEvent(0, notches);
    panel.frames();
  }
  AppState app_;
};

TEST_F(ComparePanel, AClickOnAModuleSelectsItAndShowsItsTimesInBothRuns) {
  Written panel(app_, "compare", 1400, 1000);
  panel.click(*panel.place_of("modules"));
  EXPECT_TRUE(panel.has("with the same number in both runs")) << panel.text();
  EXPECT_TRUE(panel.has("95 % interval"));
  EXPECT_TRUE(panel.has("Distribution of step times"));
  ASSERT_TRUE(panel.has("wte forward")) << panel.text();
  panel.click(*panel.place_of("wte forward"));
  EXPECT_EQ(app_.selection.kind, SelectionKind::module);
  EXPECT_TRUE(panel.has("wte forward per step")) << panel.text();
  EXPECT_TRUE(panel.has("Distribution over"));
  panel.click(*panel.place_of("Step times"));
  EXPECT_TRUE(panel.has("Distribution of step times")) << "back to those of the steps";
}

TEST_F(ComparePanel, ACollectiveIsFoundByTheFinder) {
  Written panel(app_, "compare", 1400, 1000);
  panel.click(*panel.place_of("collectives"));
  ASSERT_TRUE(panel.has("time, with waiting")) << panel.text();
  panel.click(*panel.place_of("time, with waiting"));
  EXPECT_EQ(app_.find.words, "\"all-gather\"");
  panel.click(*panel.place_of("Find all"));
  EXPECT_EQ(panel.frame().workspace().ui().show_panel, "find");
}

TEST_F(ComparePanel, TheWheelZoomsTheAlignedStepsAndFitShowsAllOfThem) {
  Written panel(app_, "compare", 1400, 1000);
  EXPECT_FALSE(panel.has("Fit"));
  const auto gather = panel.place_of("gather");
  ASSERT_TRUE(gather) << panel.text();
  wheel(panel, {700, gather->y}, 3);
  ASSERT_TRUE(panel.has("Fit")) << panel.text();
  panel.click(*panel.place_of("Fit"));
  EXPECT_FALSE(panel.has("Fit"));
  panel.click(*panel.place_of("Rank 0"));
  EXPECT_TRUE(panel.has("Rank 1")) << panel.text();
}

TEST_F(ComparePanel, ASpanShowsBothTimesAndAClickGoesToItInTheTimeline) {
  Written panel(app_, "compare", 1400, 1000);
  const auto forward = panel.place_of("forward");
  ASSERT_TRUE(forward) << panel.text();
  panel.point_at(*forward);
  EXPECT_TRUE(panel.has("of A, rank 0")) << panel.text();
  panel.click(*forward);
  ASSERT_TRUE(app_.selection.span);
  EXPECT_EQ(label_of(app_.store(), 0, *app_.selection.span), "forward");
  EXPECT_EQ(panel.frame().workspace().ui().show_panel, "timeline");
}

TEST_F(ComparePanel, ASecondRunCanBeALiveOne) {
  app_.other.reset();
  Written panel(app_, "compare", 900, 500);
  panel.click(*panel.place_of("Connect to a live run"));
  EXPECT_EQ(panel.frame().workspace().ui().dialog, Dialog::connect_second);
}

}  // namespace
}  // namespace shardscope::gui
