// The drift that follows from the offsets of chunks, and its bound.
#include "app/store/clock_drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace shardscope::store {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(ClockDrift, IsWithinItsBoundAndTheBoundShrinks) {
  for (const double ppb : {-80'000.0, 0.0, 500.0, 60'000.0}) {
    std::mt19937 random(5);
    ClockDriftEstimate estimate;
    double before = 1e18;
    for (int second = 0; second < 120; ++second) {
      const std::int64_t residual = second < 3 ? 2'000'000 : 150'000;  // the first ones are crude
      std::uniform_int_distribution<std::int64_t> error(-residual, residual);
      estimate.add(second * kSecond, 7 * kSecond + std::llround(ppb * second) + error(random), residual);
      ASSERT_EQ(estimate.value().has_value(), second > 0);
      if (!estimate.value()) continue;
      EXPECT_LE(std::abs(estimate.value()->ppb - ppb), estimate.value()->bound_ppb) << second;
      EXPECT_LE(estimate.value()->bound_ppb, before);
      before = estimate.value()->bound_ppb;
    }
    EXPECT_LT(before, 3'000) << "2 x 150 us in 117 s";
  }
}

TEST(ClockDrift, OfTheSameClockIsExactlyZero) {
  ClockDriftEstimate estimate;
  estimate.add(0, 0, 0);
  estimate.add(5 * kSecond, 0, 0);
  EXPECT_EQ(estimate.value(), (ClockDrift{0, 0}));
}

TEST(ClockDrift, BeginsAnewWhereTheClockWasSet) {
  ClockDriftEstimate estimate;
  estimate.add(0, 0, 0);  // not known yet
  estimate.add(2 * kSecond, 7 * kSecond, 1000);
  EXPECT_FALSE(estimate.value().has_value());
  estimate.add(4 * kSecond, 7 * kSecond + 20'000, 1000);
  ASSERT_TRUE(estimate.value().has_value());
  EXPECT_DOUBLE_EQ(estimate.value()->ppb, 10'000);
  EXPECT_DOUBLE_EQ(estimate.value()->bound_ppb, 1000);
}

}  // namespace
}  // namespace shardscope::store
