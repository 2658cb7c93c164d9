// Times of the run beside those of the collector.
#include "app/store/run_clock.h"

#include <gtest/gtest.h>

namespace shardscope::store {
namespace {

TEST(RunClock, TheEarliestEventIsTimeZero) {
  RunClock clock;
  EXPECT_TRUE(clock.is_before_origin(5'000));
  EXPECT_EQ(clock.begin_at(5'000), 0) << "nothing was kept before";
  EXPECT_EQ(clock.to_run(5'000), 0);
  EXPECT_EQ(clock.to_run(6'500), 1'500);
  EXPECT_EQ(clock.to_clock(1'500), 6'500);
  EXPECT_FALSE(clock.is_before_origin(5'000));
  EXPECT_FALSE(clock.is_before_origin(7'000));
}

TEST(RunClock, AnEarlierEventShiftsWhatIsKeptInTimesOfTheRun) {
  RunClock clock;
  static_cast<void>(clock.begin_at(5'000));
  const std::int64_t kept = clock.to_run(6'000);
  ASSERT_TRUE(clock.is_before_origin(4'200));
  EXPECT_EQ(clock.begin_at(4'200), 800);
  EXPECT_EQ(kept + 800, clock.to_run(6'000));
  EXPECT_EQ(clock.origin_ns(), 4'200);
}

TEST(RunClock, AClaimedTimeBeginsARunButMovesNone) {
  RunClock clock;
  clock.begin_unless_known(5'000);
  clock.begin_unless_known(1'000);
  EXPECT_EQ(clock.origin_ns(), 5'000);
  EXPECT_FALSE(clock.is_before_origin(5'000));
  EXPECT_EQ(clock.begin_at(4'000), 1'000) << "an event does";
}

TEST(RunClock, SpecialTimesStay) {
  RunClock clock;
  static_cast<void>(clock.begin_at(5'000));
  EXPECT_EQ(clock.to_run(kOpen), kOpen);
  EXPECT_EQ(clock.to_run(Lane::kNever), Lane::kNever);
  EXPECT_EQ(clock.to_clock(Store::kBegin), Store::kBegin);
  EXPECT_EQ(clock.to_clock(Store::kEnd), Store::kEnd);
  Span open;
  open.begin_ns = 6'000;
  EXPECT_EQ(clock.to_run(open).begin_ns, 1'000);
  EXPECT_EQ(clock.to_run(open).end_ns, kOpen);
  EXPECT_EQ(clock.to_run(open).mark_ns, 0) << "0 means not known";
  open.mark_ns = 6'500;
  EXPECT_EQ(clock.to_run(open).mark_ns, 1'500);
  ParamState initial;
  initial.since_ns = StatusIndex::kNever;
  EXPECT_EQ(clock.to_run(initial).since_ns, 0);
}

}  // namespace
}  // namespace shardscope::store
