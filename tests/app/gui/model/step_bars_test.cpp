// The ruler of steps where there are more steps than columns.
#include "app/gui/model/step_bars.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

/// Ten steps of 10 ms, but the eighth has 50; the fifth was skipped. In each nothing runs for 4 ms.
store::Store ten_steps() {
  test::RunBuilder run(1);
  std::int64_t at = 0;
  for (std::uint32_t step = 0; step < 10; ++step) {
    const std::int64_t end = at + (step == 7 ? 50 : 10) * kMillisecond;
    run.instant(0, at, test::EventKind::step_begin, test::StreamId::host, step);
    run.span(0, at + 4 * kMillisecond, end, test::EventKind::module_begin, test::StreamId::compute, 1);
    run.instant(0, end, test::EventKind::step_end, test::StreamId::host, step, test::ev::kNoId,
                test::ev::kNoId, step == 4 ? 1 : 0);
    at = end;
  }
  return std::move(run.build());
}

TEST(StepBars, AColumnShowsTheLongestOfItsSteps) {
  Session run(ten_steps());
  ASSERT_TRUE(run.settle(std::chrono::minutes(1)));
  StepBars bars;
  const std::vector<StepBar>& three = bars.of(run, 3);
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[0].first, 0U);
  EXPECT_EQ(three[0].last, 3U);
  EXPECT_EQ(three[1].last, 6U);
  EXPECT_TRUE(three[1].skipped);
  EXPECT_FALSE(three[0].skipped);
  EXPECT_EQ(three[2].last, 10U) << "no step is in no bar";
  EXPECT_EQ(three[2].longest, 7U);
  EXPECT_EQ(three[2].length_ns, 50 * kMillisecond);
  EXPECT_DOUBLE_EQ(bars.full_ns(), 30.0 * kMillisecond) << "three medians";
  EXPECT_EQ(text_of(three[2], run), "Step 7: 50.0 ms, worst part 4.00 ms idle\nthe longest of steps 6 to 9");
}

TEST(StepBars, EachStepHasItsOwnWhereThereIsRoom) {
  Session run(ten_steps());
  StepBars bars;
  const std::vector<StepBar>& all = bars.of(run, 40);
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(all[7].length_ns, 50 * kMillisecond);
  EXPECT_FALSE(all[7].known) << "not analysed yet";
  EXPECT_EQ(text_of(all[7], run), "Step 7: 50.0 ms, not analysed yet");
  ASSERT_TRUE(run.settle(std::chrono::minutes(1)));
  EXPECT_TRUE(bars.of(run, 40)[7].known) << "made again with the analysis";
  EXPECT_TRUE(bars.of(run, 0).empty());
}

TEST(StepBars, StepsBeyondTheTargetAreCountedAndItsLineIsInTheHeight) {
  Session run(ten_steps());
  StepBars bars;
  bars.of(run, 40);
  EXPECT_EQ(bars.beyond(), 0U) << "without a target none is";
  EXPECT_EQ(bars.median_ns(), 10 * kMillisecond);
  const StepBar eighth = bars.of(run, 40, 12 * kMillisecond)[7];
  EXPECT_EQ(bars.beyond(), 1U);
  EXPECT_EQ(bars.of(run, 3, 12 * kMillisecond).size(), 3U);
  EXPECT_EQ(bars.beyond(), 1U) << "of steps, not of bars";
  bars.of(run, 40, 10 * kMillisecond);
  EXPECT_EQ(bars.beyond(), 1U) << "a step as long as the target is not beyond it";
  bars.of(run, 40, 9 * kMillisecond);
  EXPECT_EQ(bars.beyond(), 10U);
  EXPECT_EQ(text_of(eighth, run, 12 * kMillisecond),
            "Step 7: 50.0 ms, not analysed yet\n38.0 ms over the target of 12.0 ms");
  EXPECT_EQ(text_of(eighth, run, 50 * kMillisecond), "Step 7: 50.0 ms, not analysed yet");
}

TEST(StepBars, ATargetAboveEveryStepIsWithinThreeMedians) {
  test::RunBuilder builder(1);
  for (std::uint32_t step = 0; step < 4; ++step)
    builder.span(0, step * 10 * kMillisecond, (step + 1) * 10 * kMillisecond, test::EventKind::step_begin,
                 test::StreamId::host, step);
  const Session run(std::move(builder.build()));
  StepBars bars;
  bars.of(run, 40);
  EXPECT_DOUBLE_EQ(bars.full_ns(), 10.0 * kMillisecond);
  bars.of(run, 40, 20 * kMillisecond);
  EXPECT_DOUBLE_EQ(bars.full_ns(), 21.0 * kMillisecond);
  bars.of(run, 40, 900 * kMillisecond);
  EXPECT_DOUBLE_EQ(bars.full_ns(), 30.0 * kMillisecond) << "a far one does not flatten the steps";
}

}  // namespace
}  // namespace shardscope::gui
