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
  RankTimers agenda;
  agenda.look(7, 3.0);
  agenda.look(5, 2.0);
  agenda.look(6, 9.0);
  EXPECT_EQ(agenda.take(1.0), Ranks{});
  EXPECT_EQ(agenda.take(3.0), (Ranks{5, 7}));
  EXPECT_EQ(agenda.take(8.0), Ranks{}) << "each is taken once";
  EXPECT_EQ(agenda.take(9.0), Ranks{6});
}

TEST(RankTimers, AnEarlierTimeReplacesALaterOneAndALaterOneNothing) {
  RankTimers agenda;
  agenda.look(1, 5.0);
  agenda.look(1, 2.0);
  agenda.look(1, 9.0);
  EXPECT_EQ(agenda.take(2.0), Ranks{1});
  EXPECT_EQ(agenda.take(10.0), Ranks{}) << "the entry that was replaced must not count";
  agenda.look(1, 5.0);  // the time of the replaced entry again
  EXPECT_EQ(agenda.take(5.0), Ranks{1});
}

TEST(RankTimers, WhatNeverComesOrWasReplacedIsNotKept) {
  RankTimers agenda;
  agenda.look(1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(agenda.entries(), 0U);
  agenda.look(1, 5.0);
  agenda.look(1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(agenda.take(5.0), Ranks{1}) << "a later time replaces nothing, never neither";
  for (double at_s = 1e6; at_s > 1e3; at_s -= 1) {
    agenda.look(1, at_s);
    agenda.look(2, at_s + 0.5);
  }
  EXPECT_LE(agenda.entries(), 2 * RankTimers::kMostStale);
  agenda.forget(2);
  EXPECT_EQ(agenda.take(1e7), Ranks{1});
}

TEST(RankCounts, CountsFollowEachChangeOfARank) {
  RankCounts census;
  RankCounts::Traits traits;
  traits.connected = traits.unsettled = traits.other_clock = traits.here = true;
  census.note(3, traits);
  census.note(3, traits);  // the same is no second rank
  census.note(1, traits);
  EXPECT_EQ(census.connected(), 2U);
  EXPECT_TRUE(census.any_unsettled() && census.clocks_differ());
  EXPECT_FALSE(census.any_holding());
  EXPECT_EQ(Ranks(census.here().begin(), census.here().end()), (Ranks{1, 3}));
  traits = {};
  traits.finished = traits.holding = true;
  census.note(3, traits);
  EXPECT_EQ(census.connected(), 1U);
  EXPECT_EQ(census.finished(), 1U);
  EXPECT_TRUE(census.any_holding());
  census.forget(3);
  census.forget(1);
  EXPECT_EQ(census.connected() + census.finished(), 0U);
  EXPECT_FALSE(census.any_unsettled() || census.any_holding() || census.clocks_differ());
  EXPECT_TRUE(census.here().empty());
}

}  // namespace
}  // namespace shardscope::collector
