// Times of records by the host's clock, by the wall clock and by both, with a wall clock that is set.
#include "runtime/profile/record_clock.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace shardscope::profile {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;
constexpr std::int64_t kEpoch = 1'700'000'000 * kOneSecond;  // the wall clock when the host's showed 0

/// A pair that was read at `host_ns` in 40 ns.
ClockPair pair_at(std::int64_t host_ns, std::int64_t other_ns) {
  return {other_ns, host_ns - 20, host_ns + 20};
}

void read_at(RecordClock& clock, std::int64_t host_ns, std::int64_t cupti_ns, std::int64_t wall_ns) {
  clock.add(pair_at(host_ns, cupti_ns), pair_at(host_ns, wall_ns));
}

TEST(RecordClock, NeedsAPairOfBothClocks) {
  RecordClock clock(true);
  EXPECT_FALSE(clock.ready());
  clock.add({0, 1, 0}, pair_at(kOneSecond, kEpoch + kOneSecond));  // CUPTI's could not be read
  EXPECT_FALSE(clock.ready());
  read_at(clock, kOneSecond, kOneSecond, kEpoch + kOneSecond);
  EXPECT_TRUE(clock.ready());
}

TEST(RecordClock, TimesByTheHostsClockAreNotTouched) {
  RecordClock clock(true);
  for (int i = 1; i < 40; ++i) read_at(clock, i * kOneSecond, i * kOneSecond, kEpoch + i * kOneSecond);
  EXPECT_EQ(clock.to_host(12'345'678'901), 12'345'678'901);
  EXPECT_EQ(clock.by_wall_clock(), 0U);
  EXPECT_EQ(clock.residual_ns(), 20);
}

TEST(RecordClock, WallClockTimesAreRecognizedAndConverted) {
  // It gains 10 parts per million: 10 us in a second.
  const auto wall_at = [](std::int64_t host_ns) { return kEpoch + host_ns + host_ns / 100'000; };
  RecordClock clock(true);
  for (int i = 10; i < 400; ++i)
    read_at(clock, i * kOneSecond / 10, i * kOneSecond / 10, wall_at(i * kOneSecond / 10));
  const std::int64_t at = 39 * kOneSecond + 777;
  EXPECT_NEAR(static_cast<double>(clock.to_host(static_cast<std::uint64_t>(wall_at(at))) - at), 0, 5);
  EXPECT_EQ(clock.by_wall_clock(), 1U);
  EXPECT_EQ(clock.to_host(static_cast<std::uint64_t>(at)), at);
  EXPECT_EQ(clock.by_wall_clock(), 1U);
}

TEST(RecordClock, AWallClockThatIsSetDoesNotReachTimesByTheHostsClock) {
  RecordClock clock(true);
  for (int i = 1; i < 10; ++i) read_at(clock, i * kOneSecond, i * kOneSecond, kEpoch + i * kOneSecond);
  // Set back by an hour between the records and their conversion.
  read_at(clock, 10 * kOneSecond, 10 * kOneSecond, kEpoch + 10 * kOneSecond - 3'600 * kOneSecond);
  EXPECT_EQ(clock.to_host(9'500'000'000), 9'500'000'000);
  EXPECT_EQ(clock.residual_ns(), 20);
  EXPECT_EQ(clock.pairs(), 10U);
}

TEST(RecordClock, WithoutOursCuptisOwnIsFollowedWhateverItIs) {
  // As on a machine where it is another monotonic clock, 3 s from ours.
  RecordClock clock;
  for (int i = 1; i < 10; ++i) read_at(clock, i * kOneSecond, (i + 3) * kOneSecond, kEpoch + i * kOneSecond);
  EXPECT_EQ(clock.to_host(11'500'000'000), 8'500'000'000);
  EXPECT_EQ(clock.by_wall_clock(), 0U);
}

}  // namespace
}  // namespace shardscope::profile
