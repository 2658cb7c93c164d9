// What a reader of a recording counts, and what it finds out of order or missing.
#include "app/store/events_read.h"

#include <gtest/gtest.h>

namespace shardscope::store {
namespace {

TEST(EventsRead, CountsByRankAndInAll) {
  EventsRead read;
  read.follow(0, 0, 1);
  read.count(0, 1, 100);
  read.follow(1, 0, 3);
  read.count(1, 3, 50);
  read.follow(1, 3, 2);
  read.count_not_kept(1, 2, 7);
  EXPECT_EQ(read.chunks(), 4U);
  EXPECT_EQ(read.events(), 150U) << "those that were not kept are not in the file";
  EXPECT_EQ(read.not_kept_chunks(), 2U);
  EXPECT_EQ(read.by_rank().at(0), 100U);
  EXPECT_EQ(read.by_rank().at(1), 57U);
  EXPECT_EQ(read.missing(), 0U);
}

TEST(EventsRead, ChunksThatWereLeftOutAreMissing) {
  EventsRead read;
  read.follow(0, 2, 1);
  EXPECT_EQ(read.missing(), 2U) << "a rank begins with 0";
  read.follow(0, 3, 4);
  EXPECT_EQ(read.missing(), 2U) << "the last of them is 6";
  read.follow(0, 8, 1);
  EXPECT_EQ(read.missing(), 3U);
}

TEST(EventsRead, WhatIsBehindOrInsideOfWhatWasReadDoesNotComeNext) {
  EventsRead read;
  read.follow(0, 0, 4);
  EXPECT_FALSE(read.comes_next(0, 3));
  EXPECT_THROW(read.follow(0, 3, 1), std::runtime_error);
  EXPECT_TRUE(read.comes_next(0, 4));
  EXPECT_TRUE(read.comes_next(1, 0)) << "another rank";
  read.follow(0, 4, 1);
  EXPECT_EQ(read.missing(), 0U);
}

}  // namespace
}  // namespace shardscope::store
