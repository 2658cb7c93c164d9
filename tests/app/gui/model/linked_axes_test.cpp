// Axes that share the timeline's range, and axes that do not.
#include "app/gui/model/linked_axes.h"

#include <vector>

#include "app/gui/model/step_of.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, TheMemoryCurveSharesTheTimelinesRangeUntilItIsUnlinked) {
  const std::int64_t end = data().end_ns();
  app_.time.set({0, end / 2}, end);
  EXPECT_EQ(&memory_axis(app_), &app_.time);
  app_.timeline.view.memory_linked = false;
  EXPECT_EQ(memory_axis(app_).range(), app_.time.range()) << "begins with it";
  const TimeRange own{end / 4, end / 3};
  memory_axis(app_).set(own, end);
  EXPECT_EQ(app_.time.range(), (TimeRange{0, end / 2})) << "zooming does not move the timeline";
  app_.time.set({0, end}, end);
  EXPECT_EQ(memory_axis(app_).range(), own);
  app_.timeline.view.memory_linked = true;
  EXPECT_EQ(memory_axis(app_).range(), (TimeRange{0, end}));
}

TEST_F(Model, PlotsOfStepsShowTheStepsOfTheTimelineAndMoveIt) {
  const auto steps = data().steps();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_FALSE(linked_steps(app_)) << "an option";
  app_.timeline.view.steps_linked = true;
  app_.time.set({steps[1].begin_ns, steps[3].begin_ns}, data().end_ns());
  const auto shown = linked_steps(app_);
  ASSERT_TRUE(shown);
  EXPECT_NEAR(shown->begin, steps[1].step - 0.5, 1e-6);
  EXPECT_NEAR(shown->end, steps[3].step - 0.5, 1e-6);
  // Shorter than a plot can show: around its middle.
  const std::int64_t length = steps[2].begin_ns - steps[1].begin_ns;
  app_.time.set({steps[1].begin_ns + length / 4, steps[1].begin_ns + 3 * length / 4}, data().end_ns());
  EXPECT_NEAR(linked_steps(app_)->end - linked_steps(app_)->begin, StepsShown::kFewest, 1e-6);
  EXPECT_NEAR((linked_steps(app_)->end + linked_steps(app_)->begin) / 2, steps[1].step, 1e-3);

  app_.follow = true;
  show_steps(app_, {steps[0].step - 0.5, steps[2].step - 0.5});
  EXPECT_EQ(app_.time.range().begin_ns, steps[0].begin_ns);
  EXPECT_NEAR(static_cast<double>(app_.time.range().end_ns), static_cast<double>(steps[2].begin_ns), 2);
  EXPECT_FALSE(app_.follow);
  show_steps(app_, {-100, 100});
  EXPECT_EQ(app_.time.range().begin_ns, steps[0].begin_ns) << "as far as steps were recorded";
  EXPECT_GE(app_.time.range().end_ns, steps[3].begin_ns);
}

TEST(LinkedAxes, StepsThatWereNotRecordedAreTheNearestRecordedOnes) {
  std::vector<store::StepRow> steps(4);
  const std::uint32_t numbers[] = {1, 2, 10, 11};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = numbers[i];
    steps[i].begin_ns = 100 * static_cast<std::int64_t>(i);
    steps[i].end_ns = steps[i].begin_ns + 80;
  }
  EXPECT_EQ(time_of(steps, {1.5, 6}, 380), (TimeRange{100, 200})) << "up to the next recorded step";
  EXPECT_EQ(time_of(steps, {6, 10.5}, 380), (TimeRange{200, 300}));
  EXPECT_EQ(time_of(steps, {3, 5}, 380), (TimeRange{100, 200})) << "none of them: step 2";
  EXPECT_EQ(time_of(steps, {6, 9}, 380), (TimeRange{200, 300})) << "step 10";
  EXPECT_EQ(time_of(steps, {-9, -5}, 380), (TimeRange{0, 100}));
  EXPECT_EQ(time_of(steps, {50, 90}, 380), (TimeRange{300, 380}));
  EXPECT_EQ(time_of({}, {0, 1}, 380), std::nullopt);
}

TEST_F(Model, AnUnlinkedMemoryCurveBeginsWhereTheTimelineGlidesToAndShowsTheWholeRun) {
  const std::int64_t end = data().end_ns();
  app_.time.set({0, end}, end);
  app_.time.glides = true;
  app_.time.go({end / 4, end / 2}, end);
  (void)app_.time.advance(0);
  (void)app_.time.advance(0.05);
  app_.timeline.view.memory_linked = false;
  EXPECT_EQ(memory_axis(app_).range(), (TimeRange{end / 4, end / 2}));
  app_.memory_by_hand = true;
  app_.fit();
  EXPECT_LE(memory_axis(app_).range().begin_ns, 0);
  EXPECT_GE(memory_axis(app_).range().end_ns, end);
  EXPECT_FALSE(app_.memory_by_hand);
}

TEST(LinkedAxes, AnUnlinkedMemoryCurveFollowsALiveRunUntilItIsZoomedByHand) {
  AppState app;
  app.run = Session::connect("ipc:///tmp/shardscope-no-such-collector-of-a-test");
  const_cast<store::Store&>(app.store()) = store::make_synthetic_store();
  const std::int64_t end = app.store().end_ns();
  app.time_placed = true;
  const TimeRange first{0, end / 4};
  app.time.set(first, end);
  app.timeline.view.memory_linked = false;
  EXPECT_EQ(memory_axis(app).range(), first);
  app.advance();
  EXPECT_GT(memory_axis(app).range().end_ns, end);
  EXPECT_EQ(memory_axis(app).range().length(), first.length());
  memory_axis(app).set(first, end);
  app.memory_by_hand = true;
  app.advance();
  EXPECT_EQ(memory_axis(app).range(), first);
  app.toggle_follow();
  app.toggle_follow();
  app.advance();
  EXPECT_GT(memory_axis(app).range().end_ns, end) << "who follows again follows in both";
}

}  // namespace
}  // namespace shardscope::gui
