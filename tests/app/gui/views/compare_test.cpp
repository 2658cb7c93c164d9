// The Compare panel of two runs, by pointer: rows of its tables, and the picture of two aligned steps.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

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

/// Two runs of which panels show one at a time.
class ShownOfTwo : public ComparePanel {
 protected:
  ShownOfTwo() : a_(app_.run->number()), b_(slow()) {}
  /// B computes more slowly, or nothing would tell it from A.
  std::uint64_t slow() {
    app_.other = std::make_unique<Session>(store::make_synthetic_store({.compute_gflops = 20}));
    app_.other->settle();
    return app_.other->number();
  }
  const std::uint64_t a_, b_;
};

TEST_F(ShownOfTwo, ThePanelOfOneRunNamesItAndAClickOnTheLetterShowsTheOther) {
  for (const char* name : {"memory", "overview", "timeline", "partition", "statistics", "flame", "messages",
                           "buckets", "stepper", "inspector", "trace_info"}) {
    Written panel(app_, name, 1200, 600);
    const std::string title(panel.frame().workspace().registry().find(name)->title());
    const auto place = panel.place_of(title + "A");
    ASSERT_TRUE(place) << name << ": " << panel.text();
    // The letter is at the end of these words, on their line.
    const float width = ImGui::CalcTextSize(title.c_str()).x;
    for (float x = place->x + width; app_.run->number() == a_ && x < place->x + width + 60; x += 6)
      panel.click({x, place->y});
    EXPECT_EQ(app_.run->number(), b_) << name;
    EXPECT_TRUE(panel.has(title + "B")) << name << ": " << panel.text();
    app_.show_other_run();
    ASSERT_EQ(app_.run->number(), a_);
  }
}

TEST_F(ShownOfTwo, WithOneRunNoPanelHasALetter) {
  app_.other.reset();
  Written panel(app_, "memory", 1200, 600);
  EXPECT_FALSE(panel.has("Memory A")) << panel.text();
}

TEST_F(ShownOfTwo, AKeyShowsTheOtherRun) {
  Written window(app_, "workspace", 1600, 900);
  window.frame().press('X');
  window.frames();
  EXPECT_EQ(app_.run->number(), b_);
  window.frame().press('X');
  window.frames();
  EXPECT_EQ(app_.run->number(), a_);
}

TEST_F(ShownOfTwo, CompareKeepsItsLettersWhicheverRunIsShown) {
  const auto first = [](const Written& panel) {
    return panel.text().substr(0, panel.text().find("Figures"));
  };
  Written panel(app_, "compare", 1400, 1000);
  const std::string before = first(panel);
  app_.show_other_run();
  panel.frames();
  EXPECT_EQ(first(panel), before);
}

TEST_F(ShownOfTwo, FindAllIsOfTheRunThatIsShown) {
  Written panel(app_, "compare", 1400, 1000);
  panel.click(*panel.place_of("collectives"));
  panel.click(*panel.place_of("time, with waiting"));
  panel.point_at(*panel.place_of("Find all"));
  EXPECT_TRUE(panel.has("All spans of A")) << panel.text();
  app_.show_other_run();
  panel.frames();
  panel.point_at(*panel.place_of("Find all"));
  EXPECT_TRUE(panel.has("All spans of B")) << panel.text();
}

}  // namespace
}  // namespace shardscope::gui
