// Going to another part of a run.
#include "app/gui/model/time_axis.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace shardscope::gui {
namespace {

constexpr std::int64_t kLimit = 1'000'000'000;

TEST(TimeAxis, AJumpIsAtOnceWhereNothingGlides) {
  TimeAxis axis;
  axis.set({0, 800'000'000}, kLimit);
  axis.go({100'000, 200'000}, kLimit);
  EXPECT_EQ(axis.range(), (TimeRange{100'000, 200'000}));
  EXPECT_FALSE(axis.advance(1));
}

TEST(TimeAxis, AGlideEndsAtItsGoalWhichItShowsAllTheWay) {
  TimeAxis axis;
  axis.glides = true;
  axis.set({0, 800'000'000}, kLimit);
  const TimeRange goal{500'000'000, 500'100'000};
  axis.go(goal, kLimit);
  EXPECT_EQ(axis.goal(), goal);
  std::int64_t length = axis.range().length();
  bool between = false;
  double at = 3;
  while (axis.advance(at)) {
    EXPECT_LE(axis.range().length(), length);
    EXPECT_LE(axis.range().begin_ns, goal.begin_ns);
    EXPECT_GE(axis.range().end_ns, goal.end_ns);
    length = axis.range().length();
    between |= length < 700'000'000 && length > 200'000;
    at += 1.0 / 60;
  }
  EXPECT_TRUE(between);
  EXPECT_EQ(axis.range(), goal);
  EXPECT_LT(at, 3.3) << "seconds";
}

TEST(TimeAxis, WhatTheHandMovesEndsAGlide) {
  TimeAxis axis;
  axis.glides = true;
  axis.set({500'000'000, 500'100'000}, kLimit);
  axis.fit(kLimit);
  EXPECT_TRUE(axis.advance(4));
  axis.set({7'000, 8'000}, kLimit);
  EXPECT_FALSE(axis.advance(4.05));
  EXPECT_EQ(axis.range(), (TimeRange{7'000, 8'000}));
}

TEST(TimeAxis, WhatIsToBeRevealedIsLookedForAtTheEndOfTheGlide) {
  TimeAxis axis;
  axis.glides = true;
  axis.set({0, 1'000}, kLimit);
  axis.reveal({500'000'000, 500'000'100}, kLimit);
  const TimeRange goal = axis.goal();
  EXPECT_TRUE(goal.contains(500'000'000));
  axis.reveal({500'000'200, 500'000'300}, kLimit);
  EXPECT_EQ(axis.goal(), goal) << "it is to be seen there";
}

}  // namespace
}  // namespace shardscope::gui
