// Axes that share the timeline's range, and axes that do not.
#include "app/gui/model/linked_axes.h"

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

}  // namespace
}  // namespace shardscope::gui
