// Ranges that are dragged by their ends, and the figures of one that was measured.
#include <gtest/gtest.h>

#include "app/gui/model/measured_figures.h"
#include "app/gui/model/range_grip.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST(RangeGrip, AnEndIsTakenHoldOfNearItsLineAndAllElseIsTheMiddle) {
  EXPECT_EQ(grip_at(95, 100, 200), Grip::none);
  EXPECT_EQ(grip_at(97, 100, 200), Grip::begin);
  EXPECT_EQ(grip_at(104, 100, 200), Grip::begin);
  EXPECT_EQ(grip_at(105, 100, 200), Grip::middle);
  EXPECT_EQ(grip_at(196, 100, 200), Grip::end);
  EXPECT_EQ(grip_at(204, 100, 200), Grip::end);
  EXPECT_EQ(grip_at(205, 100, 200), Grip::none);
  // Of six points, two each.
  EXPECT_EQ(grip_at(101, 100, 106), Grip::begin);
  EXPECT_EQ(grip_at(103, 100, 106), Grip::middle);
  EXPECT_EQ(grip_at(105, 100, 106), Grip::end);
}

TEST(RangeGrip, TheOtherEndStaysAlsoWhenTheOneIsDraggedPastIt) {
  const TimeRange range{100, 200};
  EXPECT_EQ(fixed_end(range, Grip::begin), 200);
  EXPECT_EQ(fixed_end(range, Grip::end), 100);
  EXPECT_EQ(range_between(fixed_end(range, Grip::begin), 150), (TimeRange{150, 200}));
  EXPECT_EQ(range_between(fixed_end(range, Grip::begin), 260), (TimeRange{200, 260}));
}

TEST(RangeGrip, TheKeyboardSetsOneEndOfTheMeasuredRange) {
  const TimeRange shown{1000, 2000};
  EXPECT_EQ(measured_from(std::nullopt, shown, Grip::begin, 1200), (TimeRange{1200, 2000}));
  EXPECT_EQ(measured_from(std::nullopt, shown, Grip::end, 1200), (TimeRange{1000, 1200}));
  EXPECT_EQ(measured_from(TimeRange{1200, 2000}, shown, Grip::end, 1500), (TimeRange{1200, 1500}));
  EXPECT_EQ(measured_from(TimeRange{1200, 1500}, shown, Grip::begin, 1700), (TimeRange{1700, 2000}))
      << "past its other end: a range anew";
  EXPECT_EQ(measured_from(std::nullopt, shown, Grip::begin, 2000), std::nullopt);
}

TEST(RangeGrip, ZoomedOutAllThatWasShownLiesWhereTheDragWas) {
  const TimeRange shown{1000, 2000};
  const TimeRange out = zoomed_out(shown, {1250, 1750});  // the middle half
  EXPECT_EQ(out, (TimeRange{500, 2500}));
  EXPECT_EQ(zoomed_out(shown, {1300, 1300}), shown);
}

/// Two steps of 1000 ns: 400 ns of computation, in it a wait of 100; 200 ns of a gather, of which computation
/// hides half.
store::Store two_steps() {
  test::RunBuilder run(1);
  for (std::uint32_t step = 0; step < 2; ++step) {
    const std::int64_t at = step * 1000;
    run.span(0, at, at + 1000, ev::EventKind::step_begin, ev::StreamId::host, step);
    run.span(0, at + 100, at + 600, ev::EventKind::module_begin, ev::StreamId::compute, 1);
    run.span(0, at + 300, at + 400, ev::EventKind::fetch_wait_begin, ev::StreamId::compute, 1, step);
    run.span(0, at + 500, at + 700, ev::EventKind::collective_begin, ev::StreamId::gather, step, step,
             test::kGatherOp, 1000, 4000);
  }
  return std::move(run.build());
}

class Measured : public ::testing::Test {
 protected:
  Measured() {
    app_.run = std::make_unique<Session>(two_steps());
    app_.run->settle();
  }
  RangeFigures of(std::int64_t begin, std::int64_t end) {
    auto out = figures_.of(app_, {begin, end});
    while (figures_.incomplete()) out = figures_.of(app_, {begin, end});
    return out.value();
  }
  AppState app_;
  MeasuredFigures figures_;
};

TEST_F(Measured, AWholeStepAndAPartOfAnotherAddUp) {
  const RangeFigures whole = of(0, 1000);
  EXPECT_EQ(whole.time.compute_ns, 400);
  EXPECT_EQ(whole.time.exposed_comm_ns, 100);
  EXPECT_EQ(whole.waits_ns, 100);
  const RangeFigures more = of(0, 1350);
  EXPECT_EQ(more.time.compute_ns, 400 + 200);
  EXPECT_EQ(more.time.exposed_comm_ns, 100);
  EXPECT_EQ(more.waits_ns, 100 + 50);
  EXPECT_EQ(more.left_out_ns, 0);
  EXPECT_EQ(text_of(more), "rank 0: compute 600 ns, exposed 100 ns, waits 150 ns");
}

TEST_F(Measured, WithinAWaitNothingIsComputedAndThatIsKnown) {
  const RangeFigures wait = of(310, 390);
  EXPECT_EQ(wait.time.compute_ns, 0);
  EXPECT_EQ(wait.time.idle_ns, 80);
  EXPECT_EQ(wait.time.unrecorded_ns, 0);
  EXPECT_EQ(wait.waits_ns, 80);
}

TEST_F(Measured, OneStepIsReadAtACall) {
  (void)figures_.of(app_, {500, 1500});
  EXPECT_TRUE(figures_.incomplete());
  EXPECT_EQ(of(500, 1500).left_out_ns, 0);
}

TEST_F(Model, MeasuredFiguresAreOfTheSelectedRankElseOfTheLowest) {
  EXPECT_EQ(rank_of_figures(app_), 0U);
  app_.select_rank(1);
  EXPECT_EQ(rank_of_figures(app_), 1U);
}

}  // namespace
}  // namespace shardscope::gui
