// Which groups the ranks of a run stand in, which of them a filter leaves, and that each is seen.
#include "app/gui/model/rank_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/rank_filter.h"
#include "app/gui/model/rank_order.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model/run_of_nodes.h"

namespace shardscope::gui {
namespace {

using namespace test;
using RankList = std::vector<std::uint32_t>;

const RankGrouping* find(const std::vector<RankGrouping>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &RankGrouping::name);
  return found == all.end() ? nullptr : &*found;
}

TEST(RankGroups, HsdpGroupsAreThoseThatTheRanksDescribed) {
  const store::Store store = described(4, 4, [](ev::RunTables& tables) {
    const std::uint32_t half = tables.rank / 2;
    tables.groups = {{1, "shards", ev::GroupPurpose::shard, {2 * half, 2 * half + 1}},
                     {2, "replicas", ev::GroupPurpose::replica, {tables.rank % 2, tables.rank % 2 + 2}},
                     {3, "all", ev::GroupPurpose::world, {0, 1, 2, 3}}};
  });
  const auto all = rank_groupings(store);
  ASSERT_EQ(all.size(), 2U);  // one node is no division, nor is the world
  const RankGrouping* const shards = find(all, "shard group");
  ASSERT_NE(shards, nullptr);
  ASSERT_EQ(shards->groups.size(), 2U);
  EXPECT_EQ(shards->groups[1].title, "shard group 1");
  EXPECT_EQ(shards->groups[1].ranks, (RankList{2, 3}));
  EXPECT_EQ(find(all, "replica group")->groups[0].ranks, (RankList{0, 2}));
}

TEST(RankGroups, MicsAndHpzGroupsFollowFromTheConfiguration) {
  const store::Store mics = described(8, 2, [](ev::RunTables& tables) {
    tables.config_json = R"({"zero_optimization": {"stage": 3, "mics_shard_size": 4}})";
  });
  const auto all = rank_groupings(mics);
  ASSERT_NE(find(all, "MiCS shard group"), nullptr);
  EXPECT_EQ(find(all, "MiCS shard group")->groups[1].ranks, (RankList{4, 5, 6, 7}));
  EXPECT_EQ(find(all, "MiCS replicas")->groups[3].ranks, (RankList{3, 7}));
  EXPECT_EQ(find(all, kByNode)->groups.size(), 4U);
  const store::Store hpz = described(8, 4, [](ev::RunTables& tables) {
    tables.config_json = R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2}})";
  });
  const auto of_hpz = rank_groupings(hpz);
  ASSERT_NE(find(of_hpz, "hpZ group"), nullptr);
  EXPECT_EQ(find(of_hpz, "hpZ group")->groups[3].ranks, (RankList{6, 7}));
  EXPECT_EQ(find(rank_groupings(of_nodes(8, 4)), "hpZ group"), nullptr);
}

TEST(RankGroups, TheTimelineHasAHeaderForEachGroupAndEveryRankOnce) {
  AppState app;
  app.run = std::make_unique<Session>(described(4, 4, [](ev::RunTables& tables) {
    tables.groups = {{2, "replicas", ev::GroupPurpose::replica, {tables.rank % 2, tables.rank % 2 + 2}}};
  }));
  arrange_ranks(app);
  EXPECT_EQ(layout_rows(app.store(), app.timeline).rows.size(), 4U);
  next_grouping(app);
  EXPECT_EQ(app.timeline.grouping, "replica group");
  arrange_ranks(app);
  const TimelineRows rows = layout_rows(app.store(), app.timeline);
  ASSERT_EQ(rows.rows.size(), 6U);
  EXPECT_EQ(rows.rows[0].given_name, "replica group 0");
  RankList order;
  for (const TimelineRow& row : rows.rows)
    if (row.kind == RowKind::rank) order.push_back(row.rank);
  EXPECT_EQ(order, (RankList{0, 2, 1, 3}));
  next_grouping(app);
  arrange_ranks(app);
  EXPECT_EQ(layout_rows(app.store(), app.timeline).rows.size(), 4U);
}

std::set<std::uint32_t> meant(const std::string& text, const store::Store& store,
                              const std::set<std::uint32_t>& slow = {}) {
  const auto all = rank_groupings(store);
  return ranks_of(parse_rank_filter(text), store, all.empty() ? std::vector<RankGroup>{} : all[0].groups,
                  slow);
}

TEST(RankFilter, TakesNumbersNodesGroupsAndSlowRanks) {
  const store::Store store = of_nodes(8, 2);
  using Set = std::set<std::uint32_t>;
  EXPECT_EQ(meant("0-2,7", store), (Set{0, 1, 2, 7}));
  EXPECT_EQ(meant("rank 5", store), (Set{5}));
  EXPECT_EQ(meant("node 2", store), (Set{4, 5}));
  EXPECT_EQ(meant("node host-ab", store), (Set{2, 3}));
  EXPECT_EQ(meant("node -ad, 0", store), (Set{0, 6, 7}));
  EXPECT_EQ(meant("group 3", store), (Set{6, 7}));
  EXPECT_EQ(meant("slow", store, {4}), (Set{4}));
  EXPECT_EQ(meant("slow", store), Set{});
  EXPECT_EQ(meant("99", store), Set{});
  for (const char* wrong : {"x", "5-2", "1-", "nodes 1", "group a"})
    EXPECT_FALSE(parse_rank_filter(wrong).problem.empty()) << wrong;
  EXPECT_TRUE(parse_rank_filter(" 1 , 3-4 ,").problem.empty());
}

TEST(RankFilter, HidesTheOthersSaysSoAndEndsWhenAHiddenRankIsGoneTo) {
  AppState app;
  app.run = std::make_unique<Session>(of_nodes(8, 2));
  app.timeline.filter = "1,6-7";
  arrange_ranks(app);
  const TimelineRows rows = layout_rows(app.store(), app.timeline);
  EXPECT_EQ(std::ranges::count(rows.rows, RowKind::rank, &TimelineRow::kind), 3);
  EXPECT_EQ(std::ranges::count(rows.rows, RowKind::node, &TimelineRow::kind), 2);
  ASSERT_TRUE(filter_line(app).has_value());
  EXPECT_EQ(filter_line(app)->text, "3 of 8 ranks: 1, 6 to 7. 5 are hidden.");
  app.show_rank(6);
  EXPECT_EQ(app.timeline.filter, "1,6-7");
  app.show_rank(3);
  EXPECT_EQ(app.timeline.filter, "");
  arrange_ranks(app);
  EXPECT_FALSE(filter_line(app).has_value());
  app.timeline.filter = "what";
  arrange_ranks(app);
  EXPECT_TRUE(filter_line(app)->problem);
  // A filter that means nothing hides nothing.
  EXPECT_FALSE(app.timeline.shown.has_value());
}

/// RankList with `depths` nested spans of computation.
store::Store deep(std::uint32_t ranks, int depths) {
  RunBuilder run(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    for (int i = 0; i < depths; ++i)
      run.span(rank, 10 + i, 990 - i, EventKind::module_begin, StreamId::compute, 1);
  }
  return std::move(run.build());
}

/// Of two runs of as many ranks, at any address.
TEST(RankGroupings, AreThoseOfTheRunThatIsShown) {
  const store::Store pairs = of_nodes(8, 2), halves = of_nodes(8, 4);
  RankGroupings kept;
  EXPECT_EQ(kept.of(1, pairs).front().groups.size(), 4U);
  ASSERT_EQ(pairs.revision(), halves.revision()) << "nothing else distinguishes the runs";
  EXPECT_EQ(kept.of(2, halves).front().groups.size(), 2U);
  EXPECT_EQ(kept.of(1, pairs).front().groups.size(), 4U);
}

TEST(RankGroupings, GrowWithTheRun) {
  store::Store store = of_nodes(4, 2);
  RankGroupings kept;
  EXPECT_EQ(kept.of(1, store).front().groups.size(), 2U);
  store::RankRow row;
  row.rank = 4;
  row.host = "node-2";
  store.set_rank(row);
  EXPECT_EQ(kept.of(1, store).front().groups.size(), 3U);
}

/// Spans of a program may be nested anywhere: each depth has a row.
TEST(TimelineRows, EveryDepthOfALaneHasARow) {
  RunBuilder run(1);
  for (const auto& [stream, depths] : {std::pair{StreamId::host, 5}, std::pair{StreamId::copy, 3},
                                       std::pair{StreamId::extra_1, 4}, std::pair{StreamId::compute, 12}}) {
    for (int i = 0; i < depths; ++i) run.span(0, 10 + i, 990 - i, EventKind::module_begin, stream, 1);
  }
  const store::Store store = std::move(run.build());
  TimelineOptions options;
  options.expanded = {0};
  const TimelineRows rows = layout_rows(store, options);
  for (const store::LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) {
      EXPECT_EQ(std::ranges::count_if(rows.rows,
                                      [&](const TimelineRow& row) {
                                        return row.is_lane() && row.kind != RowKind::rank &&
                                               row.kind != RowKind::waits && row.lane() == lane &&
                                               row.depth == d;
                                      }),
                1)
          << static_cast<int>(lane.stream) << " depth " << static_cast<int>(d);
    }
  }
  EXPECT_EQ(rows.rows[0].left_out, 0U);
}

TEST(TimelineRows, OfTheFirstRankFewerAreShownWhereTheOtherRanksWouldBeOutOfView) {
  const store::Store store = deep(4, 9);
  TimelineOptions options;
  expand_while_room(store, options, 280);
  TimelineRows rows = layout_rows(store, options);
  EXPECT_LE(rows.height, 280);
  EXPECT_EQ(options.expanded, (std::set<std::uint32_t>{0}));
  EXPECT_EQ(rows.rows[0].left_out, 9U - options.compute_depths);
  EXPECT_GE(options.compute_depths, 3);
  // As few as it takes.
  TimelineOptions more = options;
  ++more.compute_depths;
  EXPECT_GT(layout_rows(store, more).height, 280);
  // With room again, all of them; and a second rank only when it fits whole.
  expand_while_room(store, options, 360);
  rows = layout_rows(store, options);
  EXPECT_EQ(rows.rows[0].left_out, 0U);
  EXPECT_EQ(options.expanded.size(), 1U);
  // One that a filter hides takes no room: leaving its rows out gains nothing.
  options = {};
  options.expanded = {3};
  options.shown = {0, 1, 2};
  options.counters = {RowCounter::memory};
  ASSERT_GT(layout_rows(store, options).height, 120) << "the curves alone need more";
  expand_while_room(store, options, 120);
  EXPECT_EQ(options.compute_depths, kComputeDepths);
  // Where the ranks alone fill the room, the lanes of the open one are seen: the others are scrolled to.
  options = {};
  expand_while_room(store, options, 90);
  rows = layout_rows(store, options);
  EXPECT_LE(rows.height - 3 * (kRankHeaderHeight + kLaneGap), 90);
  more = options;
  ++more.compute_depths;
  EXPECT_GT(layout_rows(store, more).height - 3 * (kRankHeaderHeight + kLaneGap), 90) << "as few as it takes";
}

}  // namespace
}  // namespace shardscope::gui
