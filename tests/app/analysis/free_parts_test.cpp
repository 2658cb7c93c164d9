// What a step would gain if a part took no time, of ranks whose times are chosen so that the shorter step is
// a closed form.
#include "app/analysis/free_parts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/app/analysis/made_ranks.h"

namespace shardscope::analysis {
namespace {

constexpr std::int64_t kPerMs = 1'000'000;

/// In ms.
double gain(const std::vector<RankActivity>& ranks, PathPart part) {
  const auto path = critical_path(ranks);
  EXPECT_TRUE(path);
  return static_cast<double>(gains_without(ranks, *path)[static_cast<std::size_t>(part)]) / kPerMs;
}
double on_path(const std::vector<RankActivity>& ranks, PathPart part) {
  return static_cast<double>(critical_path(ranks)->times[static_cast<std::size_t>(part)]) / kPerMs;
}

/// Rank 0 computes until `other`, rank 1 waits for data until 400 and computes until 600; bytes move for 100.
std::vector<RankActivity> data_late(std::int64_t other) {
  const std::int64_t end = 900 * kPerMs;
  std::vector<RankActivity> ranks{rank_with(0, {{0, other}, {700 * kPerMs, end}}, end),
                                  rank_with(1, {{400 * kPerMs, 600 * kPerMs}, {700 * kPerMs, end}}, end)};
  ranks[1].data = IntervalSet({{0, 400 * kPerMs}});
  take_part(ranks[0], 5, {other, 700 * kPerMs}, 600 * kPerMs);
  take_part(ranks[1], 5, {600 * kPerMs, 700 * kPerMs}, 600 * kPerMs);
  return ranks;
}

TEST(FreeParts, DataThatIsThereGivesUpToTheRankThatComesNext) {
  EXPECT_EQ(on_path(data_late(200 * kPerMs), PathPart::data), 400);
  EXPECT_EQ(gain(data_late(200 * kPerMs), PathPart::data), 400);  // both come at 200
  EXPECT_EQ(on_path(data_late(500 * kPerMs), PathPart::data), 400);
  EXPECT_EQ(gain(data_late(500 * kPerMs), PathPart::data), 100);  // rank 0 comes at 500
}

TEST(FreeParts, BytesThatTakeNoTimeLeaveTheWaitingForTheLastRank) {
  EXPECT_EQ(gain(data_late(200 * kPerMs), PathPart::transfer), 100);
}

/// Computation of 300 and 300 hides gathers of 200 each but for the first: without computation the link
/// bounds.
TEST(FreeParts, WithoutComputationTheLaneIsTheBound) {
  RankActivity rank =
      rank_with(0, {{200 * kPerMs, 500 * kPerMs}, {500 * kPerMs, 800 * kPerMs}}, 800 * kPerMs);
  take_part(rank, 1, {0, 200 * kPerMs}, 0);
  take_part(rank, 2, {200 * kPerMs, 400 * kPerMs}, 0);
  take_part(rank, 3, {400 * kPerMs, 600 * kPerMs}, 0);
  EXPECT_EQ(on_path({rank}, PathPart::compute), 600);
  EXPECT_EQ(gain({rank}, PathPart::compute), 200);  // 600 of gathers, one after the other
  EXPECT_EQ(gain({rank}, PathPart::transfer), 200);
}

/// A gather that is issued long after the one before it has ended begins when it is issued.
TEST(FreeParts, ARequestThatComesEarlierBeginsEarlier) {
  RankActivity rank =
      rank_with(0, {{100 * kPerMs, 500 * kPerMs}, {600 * kPerMs, 800 * kPerMs}}, 800 * kPerMs);
  take_part(rank, 1, {0, 100 * kPerMs}, 0);
  take_part(rank, 2, {500 * kPerMs, 600 * kPerMs}, 0);
  EXPECT_EQ(gain({rank}, PathPart::compute), 600);  // two gathers of 100 stay
}

TEST(FreeParts, OptimizerOfOneRankAloneGivesNothingWhereTheOtherIsAsLong) {
  std::vector<RankActivity> ranks{rank_with(0, {{0, 500 * kPerMs}}, 500 * kPerMs),
                                  rank_with(1, {{0, 490 * kPerMs}}, 490 * kPerMs)};
  ranks[0].optimizer = IntervalSet({{300 * kPerMs, 500 * kPerMs}});
  EXPECT_EQ(on_path(ranks, PathPart::optimizer), 200);
  EXPECT_EQ(gain(ranks, PathPart::optimizer), 10);
}

/// Computation of 100, a gap of 20 with a gather in flight, computation of 180 that hides the rest of it.
TEST(FreeParts, AGapThatNoCollectiveEndsStaysAsItWas) {
  RankActivity rank = rank_with(0, {{0, 100 * kPerMs}, {120 * kPerMs, 300 * kPerMs}}, 300 * kPerMs);
  take_part(rank, 1, {50 * kPerMs, 200 * kPerMs}, 0);
  EXPECT_EQ(on_path({rank}, PathPart::transfer), 20);
  EXPECT_EQ(gain({rank}, PathPart::transfer), 20);
  EXPECT_EQ(gain({rank}, PathPart::compute), 150);  // the lane takes 150 and is asked at once
}

/// Kernels of a collective run for 100 while its host's span took 1, as where times are the host's.
TEST(FreeParts, CommunicationThatItsOwnSpanDoesNotCoverStaysAsItWas) {
  RankActivity rank = rank_with(0, {{0, 100 * kPerMs}, {200 * kPerMs, 300 * kPerMs}}, 300 * kPerMs);
  take_part(rank, 1, {101 * kPerMs, 102 * kPerMs}, 0);
  rank.comm = IntervalSet({{100 * kPerMs, 200 * kPerMs}});
  EXPECT_EQ(gain({rank}, PathPart::transfer), 100);
  EXPECT_EQ(gain({rank}, PathPart::compute), 200);
}

/// Of a gather that began in the step before, what is left of it is in this one.
TEST(FreeParts, BytesOfTheStepBeforeAreNotMovedAgain) {
  RankActivity rank = rank_with(0, {{100 * kPerMs, 300 * kPerMs}}, 300 * kPerMs);
  take_part(rank, 1, {-900 * kPerMs, 100 * kPerMs}, 0);
  EXPECT_EQ(gain({rank}, PathPart::transfer), 100);
  EXPECT_EQ(gain({rank}, PathPart::compute), 200);
}

/// On a link that takes no time a collective may begin where the one before it ends, and take nothing.
TEST(FreeParts, ACollectiveWithoutALengthIsIssuedBeforeItIsWaitedFor) {
  RankActivity rank = rank_with(0, {{0, 100 * kPerMs}, {200 * kPerMs, 300 * kPerMs}}, 300 * kPerMs);
  take_part(rank, 1, {100 * kPerMs, 200 * kPerMs}, 0);
  take_part(rank, 2, {200 * kPerMs, 200 * kPerMs}, 0);
  EXPECT_EQ(gain({rank}, PathPart::transfer), 100);
  EXPECT_EQ(gain({rank}, PathPart::compute), 200);
}

/// No figure rather than a wrong one, and an end.
TEST(FreeParts, ClocksThatContradictEachOtherGiveNothing) {
  const std::vector<RankActivity> ranks = ranks_of_contradicting_clocks();
  const auto path = critical_path(ranks);
  ASSERT_TRUE(path);
  EXPECT_FALSE(was_replayed(gains_without(ranks, *path)));
}

/// Below a hundredth of the step: the bound is as good as a replay.
TEST(FreeParts, AShortPartGivesAtMostItself) {
  RankActivity rank = rank_with(0, {{0, 1000 * kPerMs}}, 1000 * kPerMs);
  rank.device = rank.compute = IntervalSet({{0, 995 * kPerMs}});
  rank.data = IntervalSet({{995 * kPerMs, 1000 * kPerMs}});
  EXPECT_EQ(gain({rank}, PathPart::data), 5);
}

TEST(FreeParts, PausesAndWhatIsNotRecordedCannotBeFree) {
  RankActivity rank = rank_with(0, {{0, 300}, {500, 1000}}, 1000);
  rank.paused = IntervalSet({{300, 400}});
  rank.missing = IntervalSet({{400, 500}});
  const auto path = critical_path(std::vector{rank});
  ASSERT_TRUE(path);
  const PathTimes gains = gains_without(std::vector{rank}, *path);
  EXPECT_EQ(gains[static_cast<std::size_t>(PathPart::paused)], kNotReplayed);
  EXPECT_EQ(gains[static_cast<std::size_t>(PathPart::unrecorded)], kNotReplayed);
  EXPECT_EQ(gains[static_cast<std::size_t>(PathPart::compute)], 800);
}

}  // namespace
}  // namespace shardscope::analysis
