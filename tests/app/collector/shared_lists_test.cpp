// Tables of many ranks with lists that are the same.
#include "app/collector/shared_lists.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

TEST(SharedLists, EqualOnesAreHeldOnceAndEachRanksTablesAreWhole) {
  SharedLists shared;
  RunTables other = tables_of(2, 4);
  other.params[0].name = "another";
  const SharedLists::Tables first = shared.keep(tables_of(0, 4)), second = shared.keep(tables_of(1, 4)),
                            third = shared.keep(other);
  EXPECT_EQ(first.lists, second.lists);
  EXPECT_NE(first.lists, third.lists);
  EXPECT_TRUE(second.own.params.empty() && second.own.modules.empty());
  EXPECT_EQ(first.whole(), tables_of(0, 4));
  EXPECT_EQ(second.whole(), tables_of(1, 4));
  EXPECT_EQ(third.whole(), other);
}

TEST(SharedLists, TheyGoWithTheLastTablesThatHaveThem) {
  SharedLists shared;
  SharedLists::Tables tables = shared.keep(tables_of(0, 4));
  const std::weak_ptr<const RunTables> lists = tables.lists;
  tables = {};
  EXPECT_TRUE(lists.expired());
}

}  // namespace
}  // namespace shardscope::collector
