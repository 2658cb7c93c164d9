// The user's own order of ranks: moving one, within its group, undone, and kept for the next window.
#include "app/gui/model/own_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/rank_order.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using namespace test;
using ::testing::ElementsAre;

/// Ranks of one span each, `per_node` on a host.
class OwnOrder : public ::testing::Test {
 protected:
  void show(std::uint32_t ranks, std::uint32_t per_node) {
    RunBuilder run(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      run.span(rank, 0, 1000 + rank, EventKind::step_begin, StreamId::host, 0);
    store::Store store = std::move(run.build());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      store::RankRow row;
      row.rank = rank;
      row.host = "host-" + std::to_string(rank / per_node);
      store.set_rank(row);
    }
    app_.run = std::make_unique<Session>(std::move(store));
    app_.run->settle();
    app_.place_once();
    arrange_ranks(app_);
  }
  /// As the timeline draws them.
  std::vector<std::uint32_t> rows() {
    arrange_ranks(app_);
    std::vector<std::uint32_t> out;
    for (const TimelineRow& row : layout_rows(app_.store(), app_.timeline).rows)
      if (row.kind == RowKind::rank) out.push_back(row.rank);
    return out;
  }
  AppState app_;
};

TEST_F(OwnOrder, ARankGoesIntoTheGapWhereItIsDropped) {
  show(4, 4);
  EXPECT_TRUE(place_rank(app_, 3, 1));
  EXPECT_THAT(rows(), ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(app_.timeline.order, RankOrder::own);
  EXPECT_TRUE(place_rank(app_, 0, 4)) << "below the last";
  EXPECT_THAT(rows(), ElementsAre(3, 1, 2, 0));
  EXPECT_FALSE(place_rank(app_, 1, 1)) << "above itself";
  EXPECT_FALSE(place_rank(app_, 1, 2)) << "below itself";
  EXPECT_FALSE(place_rank(app_, 1, 5)) << "there is no such gap";
  app_.timeline.order = RankOrder::number;
  EXPECT_THAT(rows(), ElementsAre(0, 1, 2, 3)) << "the sorted order is a click away";
  app_.timeline.order = RankOrder::own;
  EXPECT_THAT(rows(), ElementsAre(3, 1, 2, 0)) << "and the own one is kept";
}

TEST_F(OwnOrder, KeysMoveARankToItsGroupsEndsAndNoFurther) {
  show(6, 3);
  ASSERT_EQ(app_.timeline.groups.size(), 2U);
  EXPECT_TRUE(shift_rank(app_, 1, 1));
  EXPECT_THAT(rows(), ElementsAre(0, 2, 1, 3, 4, 5));
  EXPECT_FALSE(shift_rank(app_, 1, 1)) << "it stays with its node";
  EXPECT_TRUE(shift_rank(app_, 5, -9));
  EXPECT_THAT(rows(), ElementsAre(0, 2, 1, 5, 3, 4));
  EXPECT_EQ(app_.timeline.groups[1].title, "host-1");
  app_.timeline.grouping = "";
  arrange_ranks(app_);
  EXPECT_TRUE(shift_rank(app_, 5, -1));
  EXPECT_THAT(rows(), ElementsAre(0, 2, 5, 1, 3, 4)) << "in no groups anywhere";
}

TEST_F(OwnOrder, AMoveIsSeenOrItIsSaidWhyThereIsNone) {
  show(6, 3);
  app_.timeline.closed_nodes = {"host-0", "host-1"};
  app_.timeline.groups.clear();  // as before the timeline is drawn
  EXPECT_EQ(move_rank(app_, 1, -1), "");
  EXPECT_EQ(app_.timeline.closed_nodes, std::set<std::string>{"host-1"}) << "its group is open";
  EXPECT_EQ(app_.rank_to_show, 1U);
  EXPECT_EQ(move_rank(app_, 1, -1), "Rank 1 is the first of host-0, and a rank stays in its group");
  EXPECT_EQ(move_rank(app_, 2, 1), "Rank 2 is the last of host-0, and a rank stays in its group");
  app_.timeline.grouping = "";
  EXPECT_EQ(move_rank(app_, 1, -1), "Rank 1 is the first");
  app_.timeline.filter = "0-3";
  app_.rank_to_show.reset();
  EXPECT_EQ(move_rank(app_, 5, 1), "Rank 5 is hidden by the filter of ranks, so it is not moved");
  EXPECT_EQ(move_rank(app_, 9, 1), "The run has no rank 9");
  EXPECT_FALSE(app_.rank_to_show) << "to show it would end the filter";
}

TEST(DragScroll, IsByTimeAndFasterFurtherOut) {
  const auto at = [](float y, double seconds) { return drag_scroll(y, 100, 300, seconds); };
  EXPECT_EQ(at(100, 1), 0);
  EXPECT_EQ(at(300, 1), 0);
  EXPECT_LT(at(99, 0.01), 0) << "up";
  EXPECT_GT(at(301, 0.01), 0) << "down";
  EXPECT_FLOAT_EQ(at(320, 0.02), 2 * at(320, 0.01)) << "as far at 50 frames a second as at 100";
  EXPECT_GT(at(340, 0.01), at(310, 0.01));
  EXPECT_FLOAT_EQ(at(5000, 0.01), 24) << "2400 px/s at most";
  EXPECT_FLOAT_EQ(at(320, 60), at(320, 0.1)) << "a window that was stopped does not jump";
}

TEST_F(OwnOrder, BesideARankThatIsShownWhateverIsHiddenBetween) {
  show(6, 6);
  app_.timeline.filter = "0,3,5";
  arrange_ranks(app_);
  EXPECT_TRUE(shift_rank(app_, 5, -1));
  EXPECT_THAT(rows(), ElementsAre(0, 5, 3));
  app_.timeline.filter.clear();
  EXPECT_THAT(rows(), ElementsAre(0, 1, 2, 5, 3, 4));
  EXPECT_FALSE(shift_rank(app_, 9, 1)) << "the run has no such rank";
}

TEST_F(OwnOrder, WhatWasSortedByAFigureBecomesTheOrder) {
  show(4, 4);
  app_.timeline.order = RankOrder::computation;
  arrange_ranks(app_);
  const std::vector<std::uint32_t> sorted = rows();
  EXPECT_TRUE(place_rank(app_, sorted[3], 0));
  EXPECT_THAT(rows(), ElementsAre(sorted[3], sorted[0], sorted[1], sorted[2]));
}

TEST_F(OwnOrder, BegunInGroupsStaysInThem) {
  show(4, 2);
  app_.timeline.order = RankOrder::exposed;
  const std::vector<std::uint32_t> sorted = rows();
  EXPECT_TRUE(place_rank(app_, sorted[3], 0));
  const auto nodes = [&] {
    arrange_ranks(app_);
    return shown_groups(app_.store(), app_.timeline).size();
  };
  EXPECT_EQ(nodes(), 2U);
  const std::vector<std::uint32_t> own = rows();
  EXPECT_LT(std::ranges::find(own, sorted[3]), std::ranges::find(own, sorted[2])) << "moved within its node";
  const RankArrangement made = arrangement_of(app_.timeline);
  KeptOrders kept, read;
  kept.put("/run", made);
  for (const std::string& line : kept.lines()) read.take_line(line);
  ASSERT_NE(read.of("/run"), nullptr);
  EXPECT_EQ(*read.of("/run"), made) << "so it is in the next window";
  next_grouping(app_);
  EXPECT_EQ(app_.timeline.order, RankOrder::own);
  EXPECT_EQ(nodes(), 1U) << "and can be seen in no groups";
}

TEST_F(OwnOrder, ADropIsInTheNearestGapOfItsGroup) {
  show(6, 3);
  app_.timeline.expanded = {1};
  const TimelineRows all = layout_rows(app_.store(), app_.timeline);
  const auto row_of = [&](std::uint32_t rank) {
    return *std::ranges::find_if(
        all.rows, [&](const TimelineRow& row) { return row.kind == RowKind::rank && row.rank == rank; });
  };
  const auto gap = [&](float y) { return drop_at(app_.store(), app_.timeline, all, 0, y)->gap; };
  EXPECT_EQ(gap(-50), 0U);
  EXPECT_EQ(gap(row_of(1).y + 4), 1U) << "its lanes belong to it: the middle is below its header";
  EXPECT_EQ(gap(row_of(2).y - 4), 2U);
  EXPECT_EQ(gap(row_of(2).y + row_of(2).height), 3U);
  EXPECT_EQ(gap(row_of(5).y), 3U) << "not among the ranks of another node";
  EXPECT_LT(drop_at(app_.store(), app_.timeline, all, 0, row_of(5).y)->y, row_of(3).y);
  EXPECT_FALSE(drop_at(app_.store(), app_.timeline, all, 9, 0));
}

/// Of a run with process groups that the next one does not have.
TEST_F(OwnOrder, InGroupsThatTheRunLacksIsByNodesAsTheNumbersAre) {
  show(4, 2);
  const auto titles = [&](RankOrder order) {
    arrange(app_.timeline, {order, "shard group", {3, 2, 1, 0}});
    arrange_ranks(app_);
    std::vector<std::string> out;
    for (const RankGroup& group : shown_groups(app_.store(), app_.timeline)) out.push_back(group.title);
    return out;
  };
  EXPECT_THAT(titles(RankOrder::number), ElementsAre("host-0", "host-1"));
  EXPECT_THAT(titles(RankOrder::own), ElementsAre("host-0", "host-1"));
  EXPECT_THAT(rows(), ElementsAre(1, 0, 3, 2));
}

TEST_F(OwnOrder, OfAllRanksOutlivesAMoveWithinANode) {
  show(4, 2);
  arrange(app_.timeline, {RankOrder::own, "", {3, 0, 2, 1}});
  EXPECT_THAT(rows(), ElementsAre(3, 0, 2, 1));
  app_.timeline.grouping = kByNode;
  EXPECT_THAT(rows(), ElementsAre(0, 1, 3, 2));
  EXPECT_TRUE(place_rank(app_, 2, 0));
  EXPECT_THAT(rows(), ElementsAre(0, 1, 2, 3));
  app_.timeline.grouping = "";
  EXPECT_THAT(rows(), ElementsAre(2, 3, 0, 1)) << "what was not moved is where it was put";
}

TEST_F(OwnOrder, MovingARankIsAPlaceThatOneGoesBackFrom) {
  show(3, 3);
  app_.history.note(place_of(app_), 0);
  EXPECT_TRUE(place_rank(app_, 2, 0));
  app_.history.note(place_of(app_), 5);
  EXPECT_THAT(rows(), ElementsAre(2, 0, 1));
  const auto before = app_.history.back(6);
  ASSERT_TRUE(before);
  go_to_place(app_, *before);
  EXPECT_THAT(rows(), ElementsAre(0, 1, 2));
  const auto after = app_.history.forward(7);
  ASSERT_TRUE(after);
  go_to_place(app_, *after);
  EXPECT_THAT(rows(), ElementsAre(2, 0, 1));
}

/// A swap of the two runs is in the middle of a frame.
TEST_F(OwnOrder, OfTheSecondRunIsNotUndoneBySwappingAndGoingBack) {
  show(3, 3);
  app_.other = std::make_unique<Session>(std::move(RunBuilder(3).build()));
  KeptOrders kept;
  kept.put(kept_as(*app_.run), {RankOrder::own, "node", {2, 1, 0}});
  double now = 0;
  const auto frame = [&](bool swaps) {
    now += 5;
    app_.place_once();
    const bool changed = kept.follow(app_);
    if (swaps) app_.swap_runs();
    kept.note_place(app_, now);
    return changed;
  };
  EXPECT_FALSE(frame(false)) << "what was read is not written again";
  EXPECT_THAT(app_.timeline.own_order, ElementsAre(2, 1, 0));
  for (const bool back : {false, true}) {
    (void)frame(true);
    (void)frame(false);
    EXPECT_FALSE(app_.history.can_go_back()) << back << ": no place was left";
  }
  EXPECT_THAT(app_.timeline.own_order, ElementsAre(2, 1, 0));
  arrange_ranks(app_);
  EXPECT_TRUE(place_rank(app_, 0, 0));
  EXPECT_TRUE(frame(false));
  arrange(app_.timeline, {});
  EXPECT_FALSE(frame(false));
  ASSERT_NE(kept.of(kept_as(*app_.run)), nullptr) << "that there is none now takes nothing from the settings";
  EXPECT_THAT(kept.of(kept_as(*app_.run))->own_order, ElementsAre(0, 2, 1));
}

TEST_F(OwnOrder, ThatWasMadeInThisWindowIsForgottenWhenItIsUndone) {
  show(3, 3);
  KeptOrders kept;
  (void)kept.follow(app_);
  EXPECT_TRUE(place_rank(app_, 2, 0));
  EXPECT_TRUE(kept.follow(app_));
  EXPECT_NE(kept.of(kept_as(*app_.run)), nullptr);
  arrange(app_.timeline, {});
  EXPECT_TRUE(kept.follow(app_));
  EXPECT_EQ(kept.of(kept_as(*app_.run)), nullptr);
  EXPECT_FALSE(kept.follow(app_));
}

TEST_F(OwnOrder, IsKeptByTheRunInLinesAndWrongOnesChangeNothing) {
  KeptOrders kept;
  for (std::uint32_t i = 0; i < 14; ++i)
    kept.put("/runs/" + std::to_string(i), {RankOrder::own, "node", {i + 1, 0}});
  kept.put("/runs/13", {RankOrder::computation, "", {3, 1, 2}});
  kept.put("/runs/12", {RankOrder::number, "", {}});
  EXPECT_EQ(kept.of("/runs/12"), nullptr) << "no order of its own";
  KeptOrders read;
  for (const std::string& line : kept.lines()) read.take_line(line);
  EXPECT_EQ(read.lines(), kept.lines());
  ASSERT_NE(read.of("/runs/13"), nullptr);
  EXPECT_EQ(*read.of("/runs/13"), (RankArrangement{RankOrder::number, "", {3, 1, 2}}))
      << "it is there to be chosen again";
  EXPECT_EQ(read.of("/runs/11")->order, RankOrder::own);
  EXPECT_EQ(read.of("/runs/0"), nullptr) << "the newest are kept";
  KeptOrders none;
  for (const char* wrong :
       {"RankOrder=own\tnode\t1,2", "RankOrder=own\tnode\t1,x\t/a", "RankOrder=own\tnode\t\t/a",
        "RankOrder=up\tnode\t1,0\t/a", "RankOrder=own\tnode\t1,1\t/a", "RankOrder="})
    none.take_line(wrong);
  EXPECT_TRUE(none.lines().empty());
}

TEST_F(OwnOrder, HiddenLevelsOfLanesAreUndoneAndKeptByTheRun) {
  show(4, 4);
  const LaneCrops crops{{{0, ev::StreamId::compute}, 2}, {{3, ev::StreamId::gather}, 1}};
  const Place before = place_of(app_);
  app_.timeline.crops = crops;
  EXPECT_FALSE(place_of(app_).same_as(before)) << "so that it is an entry of the history";
  go_to_place(app_, before);
  EXPECT_TRUE(app_.timeline.crops.empty());

  RankArrangement both{RankOrder::own, "node", {3, 1}, crops};
  KeptOrders kept, read;
  kept.put("/both", both);
  kept.put("/levels", {RankOrder::computation, "node", {}, crops});
  for (const std::string& line : kept.lines()) read.take_line(line);
  ASSERT_NE(read.of("/both"), nullptr);
  EXPECT_EQ(*read.of("/both"), both);
  ASSERT_NE(read.of("/levels"), nullptr);
  EXPECT_EQ(read.of("/levels")->crops, crops);
  EXPECT_TRUE(read.of("/levels")->own_order.empty());

  // The next window on the run: the levels come back, and leave the order that was chosen for any run.
  KeptOrders window;
  app_.timeline.order = RankOrder::computation;
  window.put(kept_as(*app_.run), *read.of("/levels"));
  window.follow(app_);
  EXPECT_EQ(app_.timeline.crops, crops);
  EXPECT_EQ(app_.timeline.order, RankOrder::computation);
  app_.timeline.crops.clear();
  EXPECT_TRUE(window.follow(app_));
  EXPECT_EQ(window.of(kept_as(*app_.run)), nullptr) << "all levels are shown again";
}

TEST_F(OwnOrder, OfOtherRanksIsUsedAsFarAsItGoes) {
  show(4, 4);
  arrange(app_.timeline, {RankOrder::own, "node", {7, 2, 2, 0}});
  EXPECT_THAT(rows(), ElementsAre(2, 0, 1, 3)) << "ranks that it does not name stand last";
}

}  // namespace
}  // namespace shardscope::gui
