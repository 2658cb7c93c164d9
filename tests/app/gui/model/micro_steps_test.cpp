// Frames of the timeline: micro-steps or steps by the room they have, and going from one to the next.
#include "app/gui/model/micro_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using ::testing::ElementsAre;

/// Steps 5, 6 and 7 from 0, 1000 and 2000 ns; the second has one micro-step, the others three.
store::Store stepped_run() {
  test::RunBuilder run(1);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::int64_t at = 1000 * i;
    run.span(0, at, at + 900, ev::EventKind::step_begin, ev::StreamId::host, 5 + i);
    for (std::uint32_t k = 0; k < (i == 1 ? 1U : 3U); ++k)
      run.span(0, at + 300 * k, at + 300 * k + 250, ev::EventKind::micro_step_begin, ev::StreamId::host, k);
  }
  return std::move(run.build());
}

std::vector<std::string> names(const std::vector<StepFrame>& frames) {
  std::vector<std::string> out;
  for (const StepFrame& frame : frames) out.push_back(labels_of(frame).front());
  return out;
}

TEST(Frames, AreMicroStepsWhereTheyAreWideEnoughElseStepsElseNone) {
  const store::Store store = stepped_run();
  EXPECT_TRUE(has_micro_steps(store));
  const TimeRange all{0, 3000};
  EXPECT_THAT(names(frames_in(store, all, 100, 8)),
              ElementsAre("step 5, micro-step 0, 1 of 3", "step 5, micro-step 1, 2 of 3",
                          "step 5, micro-step 2, 3 of 3", "step 6", "step 7, micro-step 0, 1 of 3",
                          "step 7, micro-step 1, 2 of 3", "step 7, micro-step 2, 3 of 3"));
  EXPECT_THAT(names(frames_in(store, all, 1000, 8)), ElementsAre("step 5", "step 6", "step 7"));
  EXPECT_THAT(names(frames_in(store, all, 100, 2)), ElementsAre("step 5", "step 6", "step 7"))
      << "more steps than are read";
  EXPECT_TRUE(frames_in(store, all, 2000, 8).empty());
  EXPECT_THAT(names(frames_in(store, {320, 540}, 10, 8)), ElementsAre("step 5, micro-step 1, 2 of 3"));
  EXPECT_TRUE(frames_in(store, {5000, 6000}, 10, 8).empty()) << "after the run";
}

TEST(Frames, HaveLabelsFromLongToShort) {
  EXPECT_THAT(labels_of({12, 2, 8, 90, {}}),
              ElementsAre("step 12, micro-step 90, 3 of 8", "micro-step 90, 3 of 8", "3 of 8"))
      << "frameworks number them over the run";
  EXPECT_THAT(labels_of({12, 0, 1, 0, {}}), ElementsAre("step 12", "12"));
}

TEST(Frames, OfARunWithOneMicroStepAStepThereAreNone) {
  test::RunBuilder run(1);
  run.span(0, 0, 900, ev::EventKind::step_begin, ev::StreamId::host, 0);
  run.span(0, 0, 800, ev::EventKind::micro_step_begin, ev::StreamId::host, 0);
  EXPECT_FALSE(has_micro_steps(run.build()));
}

TEST(Frames, TheKeysGoFromOneToTheNextAcrossSteps) {
  AppState app;
  app.run = std::make_unique<Session>(stepped_run());
  app.run->settle();
  app.place_once();
  app.set_now(310);
  std::vector<std::int64_t> begins;
  const auto go = [&](int by) {
    if (!go_to_micro_step(app, by)) return false;
    begins.push_back(app.time.goal().begin_ns + 6);  // a margin of 1/40 of 250 ns
    return true;
  };
  ASSERT_TRUE(go(1));
  EXPECT_EQ(begins.back(), 600);
  EXPECT_GT(app.now_ns(), 600);
  EXPECT_LT(app.now_ns(), 850) << "the cursor is in it";
  ASSERT_TRUE(go_to_micro_step(app, 1));
  EXPECT_GT(app.now_ns(), 1000) << "the step with one micro-step is its own frame";
  EXPECT_LT(app.now_ns(), 1900);
  ASSERT_TRUE(go(1));
  EXPECT_EQ(begins.back(), 2000);
  ASSERT_TRUE(go(1));
  ASSERT_TRUE(go(1));
  EXPECT_EQ(begins.back(), 2600);
  EXPECT_FALSE(go_to_micro_step(app, 1)) << "it is the last";
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(go_to_micro_step(app, -1)) << i;
  EXPECT_LT(app.now_ns(), 250);
  EXPECT_FALSE(go_to_micro_step(app, -1)) << "it is the first";
}

}  // namespace
}  // namespace shardscope::gui
