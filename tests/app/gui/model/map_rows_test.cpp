// The ranks of the partition map: which, in which order, how high.
#include "app/gui/model/map_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

std::vector<std::uint32_t> ranks_of(const MapRows& rows) {
  std::vector<std::uint32_t> out;
  for (const MapRow& row : rows.rows) {
    if (row.rank != ev::kNoId) out.push_back(row.rank);
  }
  return out;
}

store::Store store_of(std::uint32_t world) {
  store::SyntheticOptions options;
  options.world = world;
  options.steps = 1;
  return store::make_synthetic_store(options);
}

TEST(MapRows, FewRanksFillTheRoom) {
  const store::Store store = store_of(4);
  const MapRows rows = map_rows(store, {}, 200);
  EXPECT_EQ(ranks_of(rows), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_FLOAT_EQ(rows.height, 200);
  for (const MapRow& row : rows.rows) EXPECT_TRUE(row.named);
  ASSERT_NE(rows.of(2), nullptr);
  EXPECT_FLOAT_EQ(rows.of(2)->y, 100);
  EXPECT_EQ(rows.of(ev::kNoId), nullptr);
  EXPECT_EQ(rows.of(7), nullptr);
}

TEST(MapRows, ManyRanksAreLowUnlessFullHeightIsAskedFor) {
  const store::Store store = store_of(32);
  const MapRows low = map_rows(store, {}, 320);
  EXPECT_LE(low.height, 320) << "all are seen";
  EXPECT_TRUE(low.rows[0].named);
  EXPECT_FALSE(low.rows[1].named) << "its number would overlap that above";
  TimelineOptions full;
  full.rank_height = RankHeight::full;
  const MapRows high = map_rows(store, full, 320);
  EXPECT_GT(high.height, 320) << "scrolled";
  EXPECT_GE(high.rows[0].height, 22);
}

TEST(MapRows, OrderGroupsAndFilterAreTheTimelines) {
  const store::Store store = store_of(4);
  TimelineOptions options;
  options.groups = {{"node a", {2, 3}}, {"node b", {0, 1}}};
  options.shown = std::set<std::uint32_t>{0, 1, 3};
  const MapRows rows = map_rows(store, options, 400);
  ASSERT_EQ(rows.rows.size(), 5U);
  EXPECT_EQ(rows.rows[0].title, "node a");
  EXPECT_EQ(ranks_of(rows), (std::vector<std::uint32_t>{3, 0, 1}));
  options.groups = {{"", {1, 3, 2, 0}}};
  EXPECT_EQ(ranks_of(map_rows(store, options, 400)), (std::vector<std::uint32_t>{1, 3, 0}));
  options.shown = std::set<std::uint32_t>{};
  EXPECT_TRUE(map_rows(store, options, 400).rows.empty());
}

}  // namespace
}  // namespace shardscope::gui
