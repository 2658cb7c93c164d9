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

}  // namespace
}  // namespace shardscope::analysis
