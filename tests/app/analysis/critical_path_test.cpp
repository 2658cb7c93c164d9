// The critical path and the blame for waiting, of ranks whose times are chosen so that each sum is a closed
// form.
#include "app/analysis/critical_path.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/app/analysis/made_ranks.h"

namespace shardscope::analysis {
namespace {

using instrumentation::StreamId;

std::int64_t of(const CriticalPath& path, PathPart part) {
  return path.times[static_cast<std::size_t>(part)];
}

/// Rank 0 is done at 200'000 and waits; rank 1 computes until 600'000; bytes move until 700'000.
std::vector<RankActivity> late_rank() {
  std::vector<RankActivity> ranks{rank_with(0, {{0, 200'000}, {700'000, 900'000}}, 900'000),
                                  rank_with(1, {{0, 600'000}, {700'000, 900'000}}, 900'000)};
  take_part(ranks[0], 5, {200'000, 700'000}, 600'000);
  take_part(ranks[1], 5, {600'000, 700'000}, 600'000);
  return ranks;
}

TEST(CriticalPath, GoesOnWithTheRankThatEnteredLast) {
  const auto path = critical_path(late_rank());
  ASSERT_TRUE(path);
  EXPECT_EQ(of(*path, PathPart::compute), 800'000);
  EXPECT_EQ(of(*path, PathPart::transfer), 100'000);
  EXPECT_EQ(of(*path, PathPart::idle), 0);
  EXPECT_EQ(path->pieces.front().rank, 1U);  // whose computation is what the step waits for
  EXPECT_EQ(path->pieces.front().at.end, 600'000);
}

TEST(CriticalPath, SumsToTheStepWithoutAGap) {
  std::vector<RankActivity> ranks = late_rank();
  ranks[0].window = {10'000, 950'000};  // ends last, and has 50'000 of nothing
  ranks[1].copy = IntervalSet({{0, 5'000}});
  const auto path = critical_path(ranks);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->window.begin, 0);
  EXPECT_EQ(std::accumulate(path->times.begin(), path->times.end(), std::int64_t{0}), 950'000);
  std::int64_t at = 0;
  for (const PathPiece& piece : path->pieces) {
    EXPECT_EQ(piece.at.begin, at);
    at = piece.at.end;
  }
  EXPECT_EQ(at, 950'000);
  EXPECT_EQ(of(*path, PathPart::idle), 50'000);
}

TEST(CriticalPath, DividesComputationByPhaseAndDataBeforeCommunication) {
  std::vector<RankActivity> ranks{rank_with(0, {{100, 400}, {400, 900}})};
  ranks[0].forward = IntervalSet({{50, 400}});
  ranks[0].backward = IntervalSet({{400, 800}});
  ranks[0].data = IntervalSet({{0, 100}});
  take_part(ranks[0], 1, {0, 60}, 0);
  const auto path = critical_path(ranks);
  ASSERT_TRUE(path);
  EXPECT_EQ(of(*path, PathPart::forward), 300);
  EXPECT_EQ(of(*path, PathPart::backward), 400);
  EXPECT_EQ(of(*path, PathPart::compute), 100);
  EXPECT_EQ(of(*path, PathPart::data), 100);
  EXPECT_EQ(of(*path, PathPart::idle), 100);
}

/// It must come to an end.
TEST(CriticalPath, EndsWhereClocksContradictEachOther) {
  const auto path = critical_path(ranks_of_contradicting_clocks());
  ASSERT_TRUE(path);
  EXPECT_EQ(std::accumulate(path->times.begin(), path->times.end(), std::int64_t{0}), 1000);
}

TEST(CriticalPath, IsUnknownWithoutComputation) {
  RankActivity rank = rank_with(0, {});
  rank.known = false;
  EXPECT_FALSE(critical_path(std::vector{rank}));
}

TEST(DelayAttribution, WaitingIsTheLateRanksAndTheRestMovesBytes) {
  const DelayAttribution out = attribute_delays(late_rank());
  ASSERT_EQ(out.exposed.size(), 2U);
  EXPECT_EQ(out.exposed[0].waiting_ns, 400'000);
  EXPECT_EQ(out.exposed[0].moving_ns, 100'000);
  EXPECT_EQ(out.exposed[0].gather_moving_ns, 100'000);
  EXPECT_EQ(out.exposed[0].link_ns, 100'000);
  EXPECT_EQ(out.exposed[1].waiting_ns, 0);
  ASSERT_EQ(out.late.size(), 1U);
  EXPECT_EQ(out.late[0].rank, 1U);
  EXPECT_EQ(out.late[0].others_waited_ns, 400'000);
  EXPECT_EQ(out.late[0].collectives, 1U);
}

TEST(DelayAttribution, ACollectiveInWhichTwoRanksWaitIsCountedOnce) {
  std::vector<RankActivity> ranks = late_rank();
  ranks.push_back(ranks[0]);
  ranks.back().rank = 2;
  const DelayAttribution out = attribute_delays(ranks);
  ASSERT_EQ(out.late.size(), 1U);
  EXPECT_EQ(out.late[0].others_waited_ns, 800'000);
  EXPECT_EQ(out.late[0].collectives, 1U);
}

TEST(DelayAttribution, AnEntryThatWasNotRecordedIsTheLastBegin) {
  std::vector<RankActivity> ranks = late_rank();
  for (RankActivity& rank : ranks) rank.collectives[0].entered_ns = 0;
  EXPECT_EQ(attribute_delays(ranks).exposed[0].waiting_ns, 400'000);
}

/// Two collectives at once: what they share of the waiting is counted once.
TEST(DelayAttribution, SharedWaitingIsCountedOnce) {
  std::vector<RankActivity> ranks = late_rank();
  take_part(ranks[0], 6, {300'000, 700'000}, 600'000, StreamId::reduce);
  take_part(ranks[1], 6, {600'000, 700'000}, 600'000, StreamId::reduce);
  const DelayAttribution out = attribute_delays(ranks);
  EXPECT_EQ(out.exposed[0].waiting_ns, 400'000);
  EXPECT_EQ(out.late[0].others_waited_ns, 400'000);
}

TEST(DelayAttribution, AGatherOnAFreeLinkCouldHaveBegunEarlier) {
  // The link is free from 0 to 300; the gather is exposed for 200, of which all could have been hidden.
  std::vector<RankActivity> ranks{rank_with(0, {{0, 300}, {500, 1000}})};
  take_part(ranks[0], 1, {300, 500}, 0);
  EXPECT_EQ(attribute_delays(ranks).exposed[0].hideable_gather_ns, 200);
  // Right behind another gather nothing can.
  ranks[0].device = ranks[0].compute = IntervalSet({{0, 300}, {700, 1000}});
  take_part(ranks[0], 2, {500, 700}, 0);
  EXPECT_EQ(attribute_delays(ranks).exposed[0].hideable_gather_ns, 300);
}

/// Before the update there are no parameters to gather.
TEST(DelayAttribution, AGatherAfterTheUpdateCouldNot) {
  std::vector<RankActivity> ranks{rank_with(0, {{0, 300}, {500, 1000}})};
  ranks[0].optimizer = IntervalSet({{0, 300}});
  take_part(ranks[0], 1, {300, 500}, 0);
  EXPECT_EQ(attribute_delays(ranks).exposed[0].hideable_gather_ns, 0);
}

TEST(DelayAttribution, KeepsExposedTimeByGroup) {
  constexpr std::int64_t kUnit = 100'000;
  std::vector<RankActivity> ranks{rank_with(0, {{0, kUnit}}, 9 * kUnit),
                                  rank_with(1, {{0, 3 * kUnit}}, 9 * kUnit)};
  take_part(ranks[0], 1, {kUnit, 4 * kUnit}, 3 * kUnit);
  take_part(ranks[1], 1, {3 * kUnit, 4 * kUnit}, 3 * kUnit);
  for (RankActivity& rank : ranks) rank.collectives.back().group = 77;
  take_part(ranks[0], 2, {5 * kUnit, 6 * kUnit}, 0);  // of all ranks
  take_part(ranks[1], 2, {5 * kUnit, 6 * kUnit}, 0);
  const DelayAttribution delays = attribute_delays(ranks);
  ASSERT_EQ(delays.groups.size(), 2U);
  EXPECT_EQ(delays.groups[0].rank, 0U);
  EXPECT_EQ(delays.groups[0].group, 77U);
  EXPECT_EQ(delays.groups[0].waiting_ns, 2 * kUnit);
  EXPECT_EQ(delays.groups[0].moving_ns, kUnit);
  EXPECT_EQ(delays.groups[0].late, 1U);
  EXPECT_EQ(delays.groups[0].late_ns, 2 * kUnit);
  EXPECT_EQ(delays.groups[1].waiting_ns, 0);
  EXPECT_EQ(delays.groups[1].moving_ns, kUnit);
}

}  // namespace
}  // namespace shardscope::analysis
