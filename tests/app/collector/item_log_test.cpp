// What viewers to come are sent: bounded in memory and on disk.
#include "app/collector/item_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/collector/run_sink.h"
#include "app/collector/status_board.h"
#include "app/collector/view_log.h"

namespace shardscope::collector {
namespace {

wire::ViewItem item_of(std::uint32_t number, std::size_t bytes) {
  wire::ViewItem item;
  item.kind = wire::ViewItem::Kind::chunk;
  item.id = number;
  item.data.assign(bytes, static_cast<std::uint8_t>(number));
  return item;
}

TEST(ItemLog, OlderItemsComeBackFromTheFileUnchanged) {
  ItemLog log(testing::TempDir(), {10'000, 1U << 20});
  for (std::uint32_t i = 0; i < 500; ++i) log.append(item_of(i, 100 + i % 7));
  EXPECT_LE(log.memory_bytes(), 10'000U);
  EXPECT_GT(log.file_bytes(), 30'000U);
  ASSERT_EQ(log.begin(), 0U);
  ASSERT_EQ(log.end(), 500U);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const wire::ViewItem item = log.get(i);
    ASSERT_EQ(item.id, i);
    ASSERT_EQ(item.data, item_of(i, 100 + i % 7).data);
  }
}

TEST(ItemLog, StaysWithinBothBoundsAndForgetsTheOldest) {
  ItemLog log(testing::TempDir(), {10'000, 50'000});
  for (std::uint32_t i = 0; i < 5000; ++i) {
    log.append(item_of(i, 100));
    ASSERT_LE(log.memory_bytes(), 10'000U);
    ASSERT_LE(log.file_bytes(), 50'000U);
  }
  EXPECT_EQ(log.end(), 5000U);
  EXPECT_EQ(log.end() - log.begin(), 100U + 50'000U / (100 + ItemLog::kItemHead));
  EXPECT_EQ(log.get(log.begin()).id, static_cast<std::uint32_t>(log.begin()));
  EXPECT_EQ(log.get(4999).data, item_of(4999, 100).data);
}

TEST(ItemLog, WithoutADiskItKeepsTheNewestInMemory) {
  ItemLog log("/nonexistent/folder", {10'000, 50'000});
  for (std::uint32_t i = 0; i < 500; ++i) log.append(item_of(i, 100));
  EXPECT_EQ(log.end(), 500U);
  EXPECT_EQ(log.begin(), 400U);
  EXPECT_EQ(log.get(499).id, 499U);
}

TEST(ViewLog, CountsWhatItHoldsForViewersToCome) {
  ViewLog log(testing::TempDir());
  wire::ViewItem name;
  name.kind = wire::ViewItem::Kind::name;
  name.text.assign(1000, 'n');
  log.add_name(name);
  log.add_name(name);
  EXPECT_EQ(log.memory_bytes(), 2000U);
  wire::ViewItem tables = item_of(0, 500);
  tables.kind = wire::ViewItem::Kind::tables;
  EXPECT_TRUE(log.add_tables(tables, std::vector<std::uint8_t>(10)));
  EXPECT_FALSE(log.add_tables(tables, std::vector<std::uint8_t>(10))) << "unchanged";
  EXPECT_EQ(log.memory_bytes(), 2500U);
  // Later ones replace them, all but the bare ones.
  tables.data.assign(600, 1);
  EXPECT_TRUE(log.add_tables(tables, std::vector<std::uint8_t>(10)));
  EXPECT_EQ(log.memory_bytes(), 2000U + 10U + 600U);
}

TEST(ViewLog, SaysHowManyOfItsItemsAViewerDoesNotGetAnyMore) {
  ViewLog log(testing::TempDir(), {1'000, 1'000});
  for (std::uint32_t i = 0; i < 100; ++i) log.append(item_of(i, 100));
  wire::ViewReply whole;
  log.read(0, 0, 1U << 20, 1000, whole);
  ASSERT_GT(whole.begin_cursor, 5U);
  ASSERT_EQ(whole.items.size(), 1 + whole.end_cursor - whole.begin_cursor);
  EXPECT_EQ(whole.items[0].text.find("the first " + std::to_string(whole.begin_cursor) +
                                     " pieces of this run (chunks of events, and messages) are no longer"),
            0U)
      << whole.items[0].text;
  // Of one that has had the begin and was too slow since.
  wire::ViewReply slow;
  log.read(0, 5, 1U << 20, 1000, slow);
  EXPECT_EQ(slow.items[0].text.find(std::to_string(whole.begin_cursor - 5) + " pieces of this run"), 0U)
      << slow.items[0].text;
  wire::ViewReply none;
  log.read(0, whole.begin_cursor, 1U << 20, 1000, none);
  EXPECT_EQ(none.items[0].kind, wire::ViewItem::Kind::chunk) << "nothing is missing to this one";
}

}  // namespace
}  // namespace shardscope::collector
