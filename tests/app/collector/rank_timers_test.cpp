#include "app/collector/rank_timers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "app/collector/rank_counts.h"

namespace shardscope::collector {
namespace {

using Ranks = std::vector<std::uint32_t>;

TEST(RankTimers, OnlyRanksWhoseTimeHasComeAreTakenTheEarliestFirst) {
  RankTimers timers;
  timers.schedule(7, 3.0);
  timers.schedule(5, 2.0);
  timers.schedule(6, 9.0);
  EXPECT_EQ(timers.take(1.0), Ranks{});
  EXPECT_EQ(timers.take(3.0), (Ranks{5, 7}));
  EXPECT_EQ(timers.take(8.0), Ranks{}) << "each is taken once";
  EXPECT_EQ(timers.take(9.0), Ranks{6});
}

TEST(RankTimers, AnEarlierTimeReplacesALaterOneAndALaterOneNothing) {
  RankTimers timers;
  timers.schedule(1, 5.0);
  timers.schedule(1, 2.0);
  timers.schedule(1, 9.0);
  EXPECT_EQ(timers.take(2.0), Ranks{1});
  EXPECT_EQ(timers.take(10.0), Ranks{}) << "the entry that was replaced must not count";
  timers.schedule(1, 5.0);  // the time of the replaced entry again
  EXPECT_EQ(timers.take(5.0), Ranks{1});
}

TEST(RankTimers, WhatNeverComesOrWasReplacedIsNotKept) {
  RankTimers timers;
  timers.schedule(1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(timers.entries(), 0U);
  timers.schedule(1, 5.0);
  timers.schedule(1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(timers.take(5.0), Ranks{1}) << "a later time replaces nothing, never neither";
  for (double at_s = 1e6; at_s > 1e3; at_s -= 1) {
    timers.schedule(1, at_s);
    timers.schedule(2, at_s + 0.5);
  }
  EXPECT_LE(timers.entries(), 2 * RankTimers::kMostStale);
  timers.forget(2);
  EXPECT_EQ(timers.take(1e7), Ranks{1});
}

TEST(RankCounts, CountsFollowEachChangeOfARank) {
  RankCounts counts;
  RankCounts::Traits traits;
  traits.connected = traits.unsettled = traits.other_clock = traits.here = true;
  counts.note(3, traits);
  counts.note(3, traits);  // the same is no second rank
  counts.note(1, traits);
  EXPECT_EQ(counts.connected(), 2U);
  EXPECT_TRUE(counts.any_unsettled() && counts.clocks_differ());
  EXPECT_FALSE(counts.any_holding());
  EXPECT_EQ(Ranks(counts.here().begin(), counts.here().end()), (Ranks{1, 3}));
  traits = {};
  traits.finished = traits.holding = true;
  counts.note(3, traits);
  EXPECT_EQ(counts.connected(), 1U);
  EXPECT_EQ(counts.finished(), 1U);
  EXPECT_TRUE(counts.any_holding());
  counts.forget(3);
  counts.forget(1);
  EXPECT_EQ(counts.connected() + counts.finished(), 0U);
  EXPECT_FALSE(counts.any_unsettled() || counts.any_holding() || counts.clocks_differ());
  EXPECT_TRUE(counts.here().empty());
}

}  // namespace
}  // namespace shardscope::collector
