// Ranks of the timeline in groups of nodes, and low rows where there are very many.
#include "app/gui/model/timeline_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/app/gui/model/run_of_nodes.h"

namespace shardscope::gui {
namespace {

using namespace test;

std::size_t count(const TimelineRows& rows, RowKind kind) {
  return static_cast<std::size_t>(std::ranges::count(rows.rows, kind, &TimelineRow::kind));
}

TEST(TimelineRows, RanksStandUnderTheirNodeAndAClosedNodeHidesItsOwnOnly) {
  const store::Store store = of_nodes(6, 2);
  TimelineOptions options;
  TimelineRows rows = layout_rows(store, options);
  EXPECT_EQ(count(rows, RowKind::node), 3U);
  EXPECT_EQ(count(rows, RowKind::rank), 6U);
  EXPECT_EQ(rows.rows[0].given_name, host_of_node(0));
  EXPECT_EQ(rows.rows[0].ranks, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(rows.rows[3].given_name, host_of_node(1));
  options.closed_nodes.insert(host_of_node(1));
  rows = layout_rows(store, options);
  EXPECT_EQ(count(rows, RowKind::node), 3U);
  EXPECT_EQ(count(rows, RowKind::rank), 4U);
  EXPECT_FALSE(rows.rows[3].expanded);
  EXPECT_TRUE(std::ranges::none_of(
      rows.rows, [](const TimelineRow& row) { return row.kind == RowKind::rank && row.rank / 2 == 1; }));
}

TEST(TimelineRows, RanksOfOneNodeAndThoseOfAGroupWithoutATitleHaveNoHeader) {
  EXPECT_EQ(count(layout_rows(of_nodes(4, 4), {}), RowKind::node), 0U);
  TimelineOptions ordered;
  ordered.groups = {{"", {3, 0, 2, 1}}};
  const TimelineRows rows = layout_rows(of_nodes(4, 2), ordered);
  EXPECT_EQ(count(rows, RowKind::node), 0U);
  EXPECT_EQ(rows.rows[0].rank, 3U);
}

TEST(TimelineRows, RowsAreLowWhereRanksWouldFillMoreThanTwoScreens) {
  const store::Store few = of_nodes(8, 8), many = of_nodes(256, 8);
  TimelineOptions options;
  resolve_height(few, options, 400);
  EXPECT_FALSE(options.heat);
  resolve_height(many, options, 400);
  EXPECT_TRUE(options.heat);
  options.expanded.insert(17);
  const TimelineRows rows = layout_rows(many, options);
  for (std::size_t i = 1; i < rows.rows.size(); ++i)
    ASSERT_GE(rows.rows[i].y, rows.rows[i - 1].y + rows.rows[i - 1].height);
  for (const TimelineRow& row : rows.rows) {
    if (row.kind == RowKind::rank) {
      EXPECT_EQ(row.heat, row.rank != 17) << "rank " << row.rank;
    }
  }
  // 3 rows are as high as a number; of 8 ranks of a node the last 2 have none.
  EXPECT_EQ(std::ranges::count_if(rows.rows, &TimelineRow::numbered), 32 * 2);
  // Every rank within two screens of 4K, with a header for each of 32 nodes.
  EXPECT_LT(rows.height, 2 * 2160.0F);
  options.rank_height = RankHeight::full;
  resolve_height(many, options, 400);
  EXPECT_FALSE(options.heat);
}

}  // namespace
}  // namespace shardscope::gui
