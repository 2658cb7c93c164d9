// When a rank is slow beside the others.
#include "app/analysis/slow_rank.h"

#include <gtest/gtest.h>

namespace shardscope::analysis {
namespace {

TEST(SlowRank, IsComparedWithTheMedianOfTheOthersAlone) {
  const OthersMedian two({100, 120});
  EXPECT_EQ(two.without(120), 100);
  EXPECT_EQ(two.without(100), 120);
  EXPECT_TRUE(is_slow(120, *two.without(120)));
  EXPECT_FALSE(is_slow(100, *two.without(100)));
  const OthersMedian five({5, 1, 4, 2, 3});
  EXPECT_EQ(five.without(5), 2.5);
  EXPECT_EQ(five.without(1), 3.5);
  EXPECT_EQ(five.without(3), 3);
  const OthersMedian four({10, 10, 10, 12});
  EXPECT_EQ(four.without(12), 10);
  EXPECT_TRUE(is_slow(11.01, 10));
  EXPECT_FALSE(is_slow(10.9, 10));
  EXPECT_FALSE(OthersMedian({7}).without(7).has_value());
  EXPECT_FALSE(is_slow(7, 0));
}

TEST(SlowRank, InOneStepLessCountsAsLonger) {
  EXPECT_TRUE(computes_longer(10.6, 10));
  EXPECT_FALSE(computes_longer(10.4, 10));
  EXPECT_FALSE(computes_longer(7, 0));
}

}  // namespace
}  // namespace shardscope::analysis
