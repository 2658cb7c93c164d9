// Why a run hangs, of stores made by hand: who waits for whom in which collective.
#include "app/analysis/hang/hang.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/app/analysis/hang/hang_runs.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(Hang, NamesTheRankThatNeverCameAndWhatItDoes) {
  RunBuilder run(3);
  common(run, 3);
  open_gather(run, 0, 2'000'000, 1);
  open_gather(run, 1, 2'500'000, 1);
  run.instant(2, 1'500'000, EventKind::module_begin, StreamId::compute, 1, 0);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet, 12'000'000'000);
  EXPECT_TRUE(hang.hung);
  EXPECT_EQ(hang.culprit, 2U);
  EXPECT_EQ(hang.ranks[0].waits_for, std::vector<std::uint32_t>{2});
  EXPECT_EQ(hang.ranks[2].how, RankState::How::working);
  EXPECT_NE(hang.text.find("Ranks 0, 1 wait in all-gather #1"), std::string::npos) << hang.text;
  EXPECT_NE(hang.text.find("Rank 2 never entered it: it is in layer (forward)"), std::string::npos)
      << hang.text;
  EXPECT_NE(hang.text.find("pre-forward of layer"), std::string::npos) << hang.text;
}

/// Later ones, of other streams, wait behind it: also of a rank that was stopped meanwhile.
TEST(Hang, ARankIsInItsOldestOpenCollective) {
  for (const bool stopped : {false, true}) {
    RunBuilder run(2);
    common(run, 2);
    open_gather(run, 0, 2'200'000, 2);
    run.instant(0, 2'000'000, EventKind::collective_begin, StreamId::reduce, 1, 0, ev::kNoId, kReduceOp, 1000,
                4000);
    store::Store& store = run.build();
    if (stopped) store.add_message(silent(0, 4'000'000'000, store::silent_message(0, 3, 71)));
    const Hang hang = diagnose_hang(store);
    ASSERT_TRUE(hang.ranks[0].collective);
    EXPECT_EQ(hang.ranks[0].collective->sequence, 1U) << stopped;
    EXPECT_EQ(hang.ranks[0].how == RankState::How::stopped, stopped);
  }
}

/// Of a run whose steps take four seconds nothing for two is usual, and what has no usual length is no hang
/// at all.
TEST(Hang, AWaitThatIsUsualInTheRunIsNoHang) {
  for (const auto& [quiet_ns, saves, hung] : {std::tuple(std::int64_t{2'000'000'000}, false, false),
                                              std::tuple(std::int64_t{11'900'000'000}, false, false),
                                              std::tuple(std::int64_t{12'100'000'000}, false, true),
                                              std::tuple(std::int64_t{60'000'000'000}, true, false)}) {
    RunBuilder run(2);
    const std::int64_t begun = 4'000'000'000;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      run.span(rank, 0, begun, EventKind::step_begin, StreamId::host, 0);
      run.instant(rank, begun + 1, EventKind::step_begin, StreamId::host, 1);
    }
    open_gather(run, 0, begun + 2'000'000, 1);
    run.instant(1, begun + 2'000'000, EventKind::phase_begin, StreamId::compute, 1, 0, ev::kNoId,
                static_cast<std::uint8_t>(saves ? ev::Phase::checkpoint_save : ev::Phase::forward));
    const store::Store& store = run.build();
    const Hang hang = diagnose_hang(store, Watched::quiet, quiet_ns);
    EXPECT_EQ(hang.hung, hung) << quiet_ns << saves;
    EXPECT_EQ(hang.culprit, 1U);
    EXPECT_EQ(hang.text.starts_with("Now: Rank 0 waits"), !hung) << hang.text;
    EXPECT_EQ(hang.text.find("a wait of 12.0 s would be") != std::string::npos, !hung && !saves) << hang.text;
    EXPECT_TRUE(diagnose_hang(store, Watched::quiet, quiet_ns, 1'000'000'000).hung || saves);
    EXPECT_EQ(hang.text.find("That may take long: rank 1 has not stopped") != std::string::npos, saves)
        << hang.text;
  }
}

TEST(Hang, BeforeAnyRankHasConnectedThatIsSaid) {
  const store::Store store;
  const Hang hang = diagnose_hang(store, Watched::quiet, 2'000'000'000);
  EXPECT_FALSE(hang.hung);
  EXPECT_EQ(hang.text, "No event of any rank has arrived.");
}

TEST(Hang, AReductionIsNamedByAllThatItsBucketHolds) {
  RunBuilder run(2);
  common(run, 2);
  for (const std::uint32_t param : {0U, 1U, 1U})
    run.instant(0, 1'900'000, EventKind::bucket_add, StreamId::host, 7, param);
  run.instant(0, 2'000'000, EventKind::collective_begin, StreamId::reduce, 1, 7, ev::kNoId, kReduceOp, 1000,
              4000);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet, 12'000'000'000);
  EXPECT_NE(hang.text.find("Rank 0 waits in reduce-scatter #1 for layer and 2 more parameters (3.91 KiB)"),
            std::string::npos)
      << hang.text;
}

TEST(Hang, WhatEveryRankHasBegunIsNoHang) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  open_gather(run, 1, 2'000'000, 1);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_FALSE(hang.hung);
  EXPECT_FALSE(hang.difference);
}

/// A rank that waits for another one that itself waits: the cause is the one that does not wait.
TEST(Hang, BlamesTheEndOfTheChain) {
  RunBuilder run(3);
  common(run, 3);
  open_gather(run, 0, 2'000'000, 2);
  open_gather(run, 1, 2'000'000, 1);
  run.instant(2, 1'500'000, EventKind::data_wait_begin, StreamId::compute, 0, 0);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_EQ(hang.culprit, 2U);
  EXPECT_NE(hang.text.find("waiting for data"), std::string::npos) << hang.text;
}

/// A rank that no other waits for with them is not listed with those that wait, and the collective that is
/// named is one that the culprit has not come to.
TEST(Hang, NamesTheCollectiveThatLacksTheCulpritAndWhoIsInIt) {
  RunBuilder run(4);
  common(run, 4);
  describe(
      run.build(), 4,
      {{0, "pair", ev::GroupPurpose::pipeline, {1, 3}}, {1, "trio", ev::GroupPurpose::replica, {0, 1, 2}}});
  open_in_group(run, 3, 1'500'000, 0);
  open_in_group(run, 0, 2'000'000, 1);
  open_in_group(run, 1, 2'000'000, 1);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_EQ(hang.culprit, 2U);
  EXPECT_EQ(hang.since_ns, 1'000'000) << "after the first event";
  EXPECT_TRUE(hang.text.starts_with("Ranks 0, 1 wait in all-gather #1 of group trio (3.91 KiB) for rank 2"))
      << hang.text;
  EXPECT_EQ(hang.ranks[3].waits_for, std::vector<std::uint32_t>{1});
}

TEST(Hang, ASenderAndItsReceiverAreInOneCollective) {
  RunBuilder run(2);
  common(run, 2);
  describe(run.build(), 2, {{0, "stages", ev::GroupPurpose::pipeline, {0, 1}}});
  open_in_group(run, 0, 2'000'000, 0, ev::CollectiveOp::send);
  open_in_group(run, 1, 2'000'000, 0, ev::CollectiveOp::receive);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_EQ(hang.culprit, ev::kNoId);
  EXPECT_FALSE(hang.difference);
  EXPECT_TRUE(hang.ranks[0].waits_for.empty());
}

/// Which of several ranks is at the other end of a receive is not recorded: no rank is named as the cause.
TEST(Hang, AReceiveInAGroupOfSeveralNamesNoRank) {
  RunBuilder run(3);
  common(run, 3);
  describe(run.build(), 3, {{0, "stages", ev::GroupPurpose::pipeline, {0, 1, 2}}});
  open_in_group(run, 0, 2'000'000, 0, ev::CollectiveOp::receive);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_EQ(hang.culprit, ev::kNoId);
  EXPECT_FALSE(hang.difference);
  EXPECT_TRUE(hang.ranks[0].waits_for.empty());
}

/// In a run that goes on ranks wait for each other all the time, and a recording may end while they do.
TEST(Hang, ClaimsNothingOfARunThatGoesOnNorWhereARecordingEnds) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  run.instant(1, 2'100'000, EventKind::module_begin, StreamId::compute, 1, 0);
  const store::Store& store = run.build();
  const Hang going = diagnose_hang(store, Watched::running);
  EXPECT_FALSE(going.hung);
  EXPECT_FALSE(going.difference);
  EXPECT_EQ(going.text, "The run continues: events come in.");
  const Hang recorded = diagnose_hang(store);
  EXPECT_FALSE(recorded.hung);
  EXPECT_TRUE(recorded.text.starts_with("Where the recording ends: Rank 0 waits")) << recorded.text;
}

TEST(Hang, JsonHasEveryRank) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  const std::string json = hang_json(diagnose_hang(run.build(), Watched::quiet));
  EXPECT_NE(json.find("\"hung\": true"), std::string::npos);
  EXPECT_NE(json.find("\"waits_for\": [\n        1\n      ]"), std::string::npos) << json;
  for (const char* const key : {"op", "sequence", "group", "elements", "bytes"})
    EXPECT_NE(json.find(std::string("\"") + key + "\": "), std::string::npos) << key << " in " << json;
}

}  // namespace
}  // namespace shardscope::analysis
