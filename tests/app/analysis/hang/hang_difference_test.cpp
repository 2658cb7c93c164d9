// Where ranks issued different collectives.
#include <gtest/gtest.h>

#include "app/analysis/hang/hang.h"
#include "tests/app/analysis/hang/hang_runs.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Ranks in different collectives: both wait, each for the other; the first difference is what says why.
TEST(HangDifference, DifferentOperationsAtOnePlaceAreTheFirstDifference) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  open_gather(run, 1, 2'000'000, 1, kReduceOp);
  run.instant(0, 1'500'000, EventKind::module_begin, StreamId::compute, 1, 0);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->what, "operation");
  EXPECT_NE(hang.text.find("rank 0 all-gather #1 (3.91 KiB), in layer; rank 1 reduce-scatter #1 (3.91 KiB)."),
            std::string::npos)
      << hang.text;
  EXPECT_TRUE(hang.hung);
  EXPECT_NE(hang.text.find("issued different collectives (operation)"), std::string::npos) << hang.text;
  ASSERT_EQ(hang.difference->sides.size(), 2U);
  EXPECT_EQ(hang.difference->sides[0].collective->sequence, 1U);
}

TEST(HangDifference, DifferentSizesAreADifferenceAndTheEarliestCounts) {
  RunBuilder run(2);
  common(run, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 1'100'000, 1'200'000, EventKind::collective_begin, StreamId::gather, 1, 0, kGatherOp,
             100 + rank, 400 + 4 * rank);
    open_gather(run, rank, 2'000'000, 2, rank == 0 ? kGatherOp : kReduceOp);
  }
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->what, "size");
  EXPECT_EQ(hang.difference->sides[0].collective->sequence, 1U);
}

// No rank hangs: each computes with what the other gave for another module.
TEST(HangDifference, GathersOfDifferentModulesOfTheSameSizeAreADifference) {
  RunBuilder run(2);
  common(run, 2);
  constexpr std::uint32_t kGather = 7;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t module = rank;  // the root, "layer"
    run.instant(rank, 1'090'000, EventKind::prefetch_issued, StreamId::host, kGather, module);
    run.span(rank, 1'100'000, 1'200'000, EventKind::collective_begin, StreamId::gather, 1, kGather, kGatherOp,
             1000, 4000);
  }
  const Hang hang = diagnose_hang(run.build());
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->what, "module");
  EXPECT_FALSE(hang.hung);
  EXPECT_NE(hang.text.find("different collectives (module): "), std::string::npos) << hang.text;
  EXPECT_NE(hang.text.find("rank 1 all-gather #1 for layer"), std::string::npos) << hang.text;
}

// What was issued and has not begun is not placed where a rank has smaller groups: its group is not recorded.
TEST(HangDifference, NumbersOfSmallerGroupsAreNotComparedWithThoseOfOthers) {
  RunBuilder run(2);
  common(run, 2);
  store::Store& store = run.build();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ev::RunTables tables = *store.rank_tables(rank);
    tables.groups = {{0, "stage", ev::GroupPurpose::pipeline, {rank}}};
    store.set_tables(rank, tables);
    run.instant(rank, 1'100'000, EventKind::collective_submitted, StreamId::host, 1, 7, 1, kGatherOp,
                100 + rank, 400 + 4 * rank);
  }
  EXPECT_FALSE(diagnose_hang(run.build(), Watched::quiet).difference);
}

TEST(HangDifference, OnlyMembersOfAGroupNeverIssueItsCollectives) {
  RunBuilder run(4);
  common(run, 4);
  describe(run.build(), 4, {{0, "pair", ev::GroupPurpose::replica, {1, 2}}});
  open_in_group(run, 1, 2'000'000, 0);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->what, "never issued");
  EXPECT_EQ(hang.difference->sides[1].ranks, std::vector<std::uint32_t>{2});
}

/// A group of which no rank has a description: how many are in it is known, or the id that this rank gave it.
void in_unknown_group(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t code,
                      std::uint32_t sequence, std::int64_t bytes) {
  run.instant(rank, at, EventKind::collective_begin, StreamId::gather, sequence, 0, code, kGatherOp,
              bytes / 4, bytes);
  run.instant(rank, at + 1000, EventKind::collective_end, StreamId::gather, sequence, 0, code, kGatherOp,
              bytes / 4, bytes);
}

// Ranks 0 and 1 gather in one pair, 2 and 3 in another, each as much as it likes.
TEST(HangDifference, CollectivesOfGroupsThatAreNotDescribedAreComparedWithNone) {
  const std::uint32_t of_two = ev::collective_code(0, ev::CollectiveScope::world, 2),
                      of_group = ev::collective_code(0, ev::CollectiveScope::group, 0);
  for (const std::uint32_t code : {of_two, of_group}) {
    RunBuilder run(4);
    common(run, 4);
    const std::uint32_t sequence = code == of_group ? ev::group_sequence(0, 1) : 1;
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      in_unknown_group(run, rank, 1'100'000, code, sequence, 400 + 400 * rank);
    EXPECT_FALSE(diagnose_hang(run.build(), Watched::quiet).difference) << code;
  }
}

// The other members of the gather that rank 1 is in are unknown; rank 3 never enters the one that all are in.
TEST(HangDifference, WhoMissesACollectiveOfAnUnknownGroupIsNotSaid) {
  RunBuilder run(4);
  common(run, 4);
  run.instant(1, 1'900'000, EventKind::collective_begin, StreamId::gather, ev::group_sequence(7, 1), 0,
              ev::collective_code(0, ev::CollectiveScope::group, 7), kGatherOp, 1000, 4000);
  EXPECT_FALSE(diagnose_hang(run.build(), Watched::quiet).difference);
  EXPECT_TRUE(diagnose_hang(run.build(), Watched::quiet).ranks[1].waits_for.empty());
  for (const std::uint32_t rank : {0U, 1U, 2U}) open_gather(run, rank, 2'000'000, 1);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_EQ(hang.culprit, 3U) << hang.text;
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->sides[1].ranks, std::vector<std::uint32_t>{3});
}

// A rank's later number in a group that only it knows does not say that it has passed what all are in.
TEST(HangDifference, NumbersOfAnUnknownGroupAreNoPlaceInTheWorldsOrder) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  in_unknown_group(run, 1, 2'100'000, ev::collective_code(0, ev::CollectiveScope::group, 7),
                   ev::group_sequence(7, 5), 400);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_EQ(hang.culprit, 1U) << hang.text;
  EXPECT_EQ(hang.ranks[0].waits_for, std::vector<std::uint32_t>{1});
}

// Of this runtime's groups the scope says who is in them: pairs of neighbours, each pair with sizes of its
// own.
TEST(HangDifference, GroupsBesideEachOtherAreComparedWithinThemselves) {
  const std::uint32_t pair = ev::collective_code(0, ev::CollectiveScope::shard, 2);
  RunBuilder run(4);
  common(run, 4);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    in_unknown_group(run, rank, 1'100'000, pair, 1, rank < 2 ? 400 : 800);
  EXPECT_FALSE(diagnose_hang(run.build(), Watched::quiet).difference);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    in_unknown_group(run, rank, 1'200'000, pair, 2, rank < 3 ? 400 : 800);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->what, "size");
  ASSERT_EQ(hang.difference->sides.size(), 2U);
  EXPECT_EQ(hang.difference->sides[0].ranks, std::vector<std::uint32_t>{2});
  EXPECT_EQ(hang.difference->sides[1].ranks, std::vector<std::uint32_t>{3});
}

}  // namespace
}  // namespace shardscope::analysis
