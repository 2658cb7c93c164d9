// The line between two clocks, with clocks that are skewed, drift, are read slowly and are set.
#include "runtime/profile/clock_fit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace shardscope::profile {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSkew = 1'700'000'000'123'456'789;  // the wall clock against one since boot

/// The other clock gains `ppb` parts per billion and shows kSkew more when the host's shows 0.
std::int64_t other_at(std::int64_t host_ns, double ppb) {
  return host_ns + kSkew + static_cast<std::int64_t>(static_cast<double>(host_ns) * ppb * 1e-9);
}

ClockPair pair_at(std::int64_t host_ns, double ppb, std::int64_t before_ns, std::int64_t after_ns) {
  return {other_at(host_ns, ppb), host_ns - before_ns, host_ns + after_ns};
}

TEST(ClockFit, KnowsNothingBeforeTheFirstPair) { EXPECT_FALSE(ClockFit().ready()); }

TEST(ClockFit, OnePairGivesTheSkewAndNoRate) {
  ClockFit fit;
  fit.add(pair_at(5 * kSecond, 0, 40, 40));
  ASSERT_TRUE(fit.ready());
  EXPECT_EQ(fit.to_host(other_at(5 * kSecond, 0)), 5 * kSecond);
  EXPECT_EQ(fit.to_host(other_at(5 * kSecond + 777, 0)), 5 * kSecond + 777);
  EXPECT_EQ(fit.drift_ppb(), 0);
  EXPECT_EQ(fit.residual_ns(), 40);  // half the bracket
}

TEST(ClockFit, FollowsADriftBetweenPairsAndAfterThem) {
  // 20 parts per million: 2 us per 100 ms between two pairs.
  constexpr double kPpb = 20'000;
  ClockFit fit;
  std::int64_t now = 3 * kSecond;
  for (int i = 0; i < 50; ++i, now += kSecond / 10) fit.add(pair_at(now, kPpb, 25, 25));
  for (std::int64_t at = now - kSecond; at < now + kSecond; at += 123'456'789) {
    EXPECT_NEAR(static_cast<double>(fit.to_host(other_at(at, kPpb)) - at), 0, 5) << at;
  }
  EXPECT_NEAR(static_cast<double>(fit.drift_ppb()), -kPpb, 5);
  EXPECT_LT(fit.residual_ns(), 35);
}

TEST(ClockFit, SlowReadingsDoNotBendTheLine) {
  // Every third reading is interrupted for up to 100 us after the other clock was read.
  constexpr double kPpb = -3'000;
  std::mt19937 random(7);
  ClockFit fit;
  std::int64_t now = kSecond;
  for (int i = 0; i < 60; ++i, now += kSecond / 10) {
    const bool slow = i % 3 == 0;
    fit.add(pair_at(now, kPpb, 30, slow ? 1'000 + static_cast<std::int64_t>(random() % 100'000) : 30));
  }
  for (std::int64_t at = now - 3 * kSecond; at < now; at += 99'999'999) {
    EXPECT_NEAR(static_cast<double>(fit.to_host(other_at(at, kPpb)) - at), 0, 60) << at;
  }
  // What a wide bracket hides is no error of the line.
  EXPECT_LT(fit.residual_ns(), 200);
}

TEST(ClockFit, TheResidualTellsOfAClockThatDoesNotRunEvenly) {
  // It is slewed to and fro by 30 us, which no line follows.
  ClockFit fit;
  std::int64_t now = kSecond;
  for (int i = 0; i < 60; ++i, now += kSecond / 10) {
    ClockPair pair = pair_at(now, 0, 20, 20);
    pair.other_ns += i % 2 == 0 ? 30'000 : -30'000;
    fit.add(pair);
  }
  EXPECT_GT(fit.residual_ns(), 25'000);
  EXPECT_EQ(fit.restarts(), 0U);
}

TEST(ClockFit, AClockThatWasSetStartsTheLineAnew) {
  ClockFit fit;
  std::int64_t now = kSecond;
  for (int i = 0; i < 20; ++i, now += kSecond / 10) fit.add(pair_at(now, 0, 20, 20));
  constexpr std::int64_t kSet = 3'600 * kSecond;
  for (int i = 0; i < 3; ++i, now += kSecond / 10) {
    ClockPair pair = pair_at(now, 0, 20, 20);
    pair.other_ns -= kSet;
    fit.add(pair);
    EXPECT_EQ(fit.to_host(pair.other_ns), now);
  }
  EXPECT_EQ(fit.restarts(), 1U);
  EXPECT_EQ(fit.pairs(), 3U);
  EXPECT_LT(fit.residual_ns(), 100);
}

TEST(ClockFit, KeepsTheLatestPairsOnlyAndLeavesOutWhatRanBackwards) {
  ClockFit fit;
  for (std::size_t i = 0; i < 3 * ClockFit::kPairs; ++i)
    fit.add(pair_at(kSecond + static_cast<std::int64_t>(i) * kSecond / 10, 0, 20, 20));
  EXPECT_EQ(fit.pairs(), ClockFit::kPairs);
  const std::int64_t before = fit.to_host(kSkew);
  fit.add({kSkew, 100, 50});
  EXPECT_EQ(fit.to_host(kSkew), before);
}

}  // namespace
}  // namespace shardscope::profile
