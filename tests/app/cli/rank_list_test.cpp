// Ranks and steps as options name them.
#include "app/cli/rank_list.h"

#include <gtest/gtest.h>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

using Ranks = std::vector<std::uint32_t>;

store::Store of_ranks(std::uint32_t world) {
  store::Store store;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    store::RankRow row;
    row.rank = rank;
    store.set_rank(row);
  }
  return store;
}

TEST(RankList, NamesEachRankOnce) {
  const store::Store store = of_ranks(6);
  EXPECT_EQ(ranks_of(store, ""), Ranks{});
  EXPECT_EQ(ranks_of(store, "4"), Ranks{4});
  EXPECT_EQ(ranks_of(store, "0,4-9"), (Ranks{0, 4, 5}));
  EXPECT_EQ(ranks_of(store, "0-3,2"), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(ranks_of(store, "3,1-4,3"), (Ranks{3, 1, 2, 4}));
}

TEST(RankList, WhatNamesNoRankIsRefused) {
  const store::Store store = of_ranks(2);
  for (const char* list : {"2", "0,7-9", "1-0", "a", "0,,1", "0-"})
    EXPECT_THROW((void)ranks_of(store, list), UserError) << list;
  EXPECT_EQ(steps_of("10-20"), (NumberRange{10, 20}));
  EXPECT_FALSE(steps_of("").has_value());
  EXPECT_THROW((void)steps_of("20-10"), UserError);
}

}  // namespace
}  // namespace shardscope::cli
