// Whose static tables are the run's.
#include "app/store/tables_of_ranks.h"

#include <gtest/gtest.h>

namespace shardscope::store {
namespace {

instrumentation::RunTables tables_with(std::size_t modules, const char* host) {
  instrumentation::RunTables tables;
  tables.host = host;
  tables.modules.resize(modules);
  return tables;
}

TEST(TablesOfRanks, AreEmptyBeforeAnyCame) {
  const TablesOfRanks tables;
  EXPECT_FALSE(tables.any());
  EXPECT_TRUE(tables.of_run().modules.empty());
  EXPECT_EQ(tables.of_rank(0), nullptr);
}

TEST(TablesOfRanks, TheRunsAreOfTheLowestRank) {
  TablesOfRanks tables;
  tables.take(2, tables_with(3, "two"));
  EXPECT_EQ(tables.of_run().host, "two");
  tables.take(1, tables_with(3, "one"));
  EXPECT_EQ(tables.of_run().host, "one");
  tables.take(3, tables_with(3, "three"));
  EXPECT_EQ(tables.of_run().host, "one");
  EXPECT_EQ(tables.of_run().rank, 1U);
}

TEST(TablesOfRanks, ThoseWithMoreModulesAreTheRunsWhoeverSendsThem) {
  TablesOfRanks tables;
  tables.take(0, tables_with(3, "zero"));
  tables.take(1, tables_with(4, "one"));
  EXPECT_EQ(tables.of_run().host, "one");
  tables.take(0, tables_with(3, "zero"));
  EXPECT_EQ(tables.of_run().modules.size(), 4U) << "older ones of a lower rank do not replace them";
  tables.take(0, tables_with(4, "zero"));
  EXPECT_EQ(tables.of_run().host, "zero");
}

TEST(TablesOfRanks, OfARankOnlyWhatIsItsOwnIsKept) {
  TablesOfRanks tables;
  tables.take(1, tables_with(3, "one"));
  ASSERT_NE(tables.of_rank(1), nullptr);
  EXPECT_EQ(tables.of_rank(1)->host, "one");
  EXPECT_TRUE(tables.of_rank(1)->modules.empty());
  EXPECT_EQ(tables.of_run().modules.size(), 3U);
}

}  // namespace
}  // namespace shardscope::store
