// Why a run stands still, of stores made by hand: who waits for whom, and where the ranks parted.
#include "app/analysis/hang.h"

#include <gtest/gtest.h>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr auto kReduceOp = static_cast<std::uint8_t>(ev::CollectiveOp::reduce_scatter);

/// Every rank gathers #0 within a step; what follows is each test's own.
void common(RunBuilder& run, std::uint32_t world) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    run.instant(rank, 1'000'000, EventKind::step_begin, StreamId::host, 0);
    run.instant(rank, 1'000'100, EventKind::gate, StreamId::host, 1, 1, ev::kNoId,
                static_cast<std::uint8_t>(ev::GateKind::pre_forward));
    run.span(rank, 1'001'000, 1'002'000, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp, 1000,
             4000);
  }
}
void open_gather(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t sequence,
                 std::uint8_t op = kGatherOp, std::int64_t bytes = 4000) {
  run.instant(rank, at, EventKind::collective_begin, StreamId::gather, sequence, 0, ev::kNoId, op, bytes / 4,
              bytes);
}

TEST(Hang, NamesTheRankThatNeverCameAndWhatItDoes) {
  RunBuilder run(3);
  common(run, 3);
  open_gather(run, 0, 2'000'000, 1);
  open_gather(run, 1, 2'500'000, 1);
  run.instant(2, 1'500'000, EventKind::module_begin, StreamId::compute, 1, 0);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet, 3'000'000'000);
  EXPECT_TRUE(hang.stands_still);
  EXPECT_EQ(hang.culprit, 2U);
  EXPECT_EQ(hang.ranks[0].waits_for, std::vector<std::uint32_t>{2});
  EXPECT_EQ(hang.ranks[2].how, RankState::How::working);
  EXPECT_NE(hang.text.find("Ranks 0, 1 wait in all-gather #1"), std::string::npos) << hang.text;
  EXPECT_NE(hang.text.find("Rank 2 never came to it: it is in layer (forward)"), std::string::npos)
      << hang.text;
  EXPECT_NE(hang.text.find("pre-forward of layer"), std::string::npos) << hang.text;
}

TEST(Hang, ARankThatEndedEarlyIsNamedWithItsEnd) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  store::Store& store = run.build();
  store::RankRow row = store.ranks()[1];
  row.finished = true;
  row.connected = false;
  store.set_rank(row);
  const Hang hang = diagnose_hang(store);
  EXPECT_TRUE(hang.stands_still);
  EXPECT_EQ(hang.culprit, 1U);
  EXPECT_EQ(hang.ranks[1].how, RankState::How::ended);
  EXPECT_NE(hang.text.find("Rank 1 never came to it: it has ended, with code 0"), std::string::npos)
      << hang.text;
}

TEST(Hang, AKilledRankIsNamedWithItsSignal) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  store::Store& store = run.build();
  store::RankRow row = store.ranks()[1];
  row.exit_code = 128 + 9;
  row.connected = false;
  store.set_rank(row);
  const Hang hang = diagnose_hang(store);
  EXPECT_EQ(hang.culprit, 1U);
  EXPECT_NE(hang.text.find("it was killed by signal 9 (SIGKILL)"), std::string::npos) << hang.text;
}

store::Message silent(std::uint32_t rank, std::int64_t at_ns, const std::string& text) {
  return {.at_ns = at_ns, .rank = rank, .severity = ev::Severity::warning, .text = text, .stands_for = 0};
}

TEST(Hang, AStoppedRankIsNotGone) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  run.instant(1, 1'500'000, EventKind::module_begin, StreamId::compute, 1, 0);
  store::Store& store = run.build();
  store.add_message(silent(1, 4'000'000'000, store::silent_message(1, 3, 71)));
  const Hang hang = diagnose_hang(store);
  EXPECT_TRUE(hang.stands_still);
  EXPECT_EQ(hang.ranks[1].how, RankState::How::stopped);
  EXPECT_EQ(hang.ranks[1].since_ns, 1'000'000'000);
  EXPECT_NE(hang.text.find("it is stopped since 1.000 s, last seen in layer (forward)"), std::string::npos)
      << hang.text;
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

TEST(Hang, AStopThatIsOverIsSaidOfARecording) {
  RunBuilder run(2);
  common(run, 2);
  store::Store& store = run.build();
  store.add_message(silent(1, 4'000'000'000, store::silent_message(1, 3, 0)));
  store.add_message(
      silent(1, 22'000'000'000, store::sends_again_message(1, 21, store::SendsAgain::on_this_host)));
  const Hang hang = diagnose_hang(store);
  EXPECT_FALSE(hang.stands_still);
  ASSERT_EQ(hang.stops.size(), 1U);
  EXPECT_NE(hang.text.find("Rank 1 stood still from 1.000 s to 22.000 s (21"), std::string::npos)
      << hang.text;
}

// For a part of it there was no process, or only the network stood still.
TEST(Hang, ASilenceThatEndsOtherwiseIsNotCalledAStandstill) {
  for (const auto how : {store::SendsAgain::restarted, store::SendsAgain::on_another_host}) {
    RunBuilder run(2);
    common(run, 2);
    store::Store& store = run.build();
    store.add_message(silent(1, 4'000'000'000, store::silent_message(1, 3, 0)));
    store.add_message(silent(1, 22'000'000'000, store::sends_again_message(1, 21, how)));
    const std::string text = diagnose_hang(store).text;
    EXPECT_NE(text.find("Rank 1 sent nothing from 1.000 s to 22.000 s (21"), std::string::npos) << text;
    EXPECT_EQ(text.find("stood still from"), std::string::npos) << text;
  }
}

/// By SIGKILL, whereupon rank 0 fails.
void rank_1_is_killed(store::Store& store) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    store::RankRow row = store.ranks()[rank];
    row.finished = rank == 0;
    row.exit_code = rank == 0 ? 1 : 128 + 9;
    row.connected = false;
    store.set_rank(row);
  }
}

TEST(Hang, WhereAllAreOverTheKilledOneIsWhyTheyWaited) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  store::Store& store = run.build();
  rank_1_is_killed(store);
  const Hang hang = diagnose_hang(store);
  EXPECT_TRUE(hang.stands_still);
  EXPECT_EQ(hang.text.find("not recorded"), std::string::npos) << hang.text;
  EXPECT_NE(hang.text.find("it was killed by signal 9 (SIGKILL)"), std::string::npos) << hang.text;
}

/// A gather that the library ends by an error, as where it lost the connection to another of its ranks.
void failed_gather(RunBuilder& run, std::uint32_t rank, std::int64_t begin, std::int64_t end,
                   std::uint32_t sequence) {
  const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::world, 3);
  run.instant(rank, begin, EventKind::collective_begin, StreamId::gather, sequence, 0, code, kGatherOp, 1000,
              4000);
  run.instant(rank, end, EventKind::collective_end, StreamId::gather, sequence, 0, code | ev::kEndedByError,
              kGatherOp, 1000, 4000);
}

/// Ranks 0 and 2 wait in the next all-gather until it ends by an error; rank 1 has not begun it.
void gathers_fail(RunBuilder& run) {
  common(run, 3);
  failed_gather(run, 0, 2'000'000, 7'000'000, 1);
  failed_gather(run, 2, 2'500'000, 8'000'000, 1);
}
void over(store::Store& store, std::uint32_t rank, std::int32_t exit_code) {
  store::RankRow row = store.ranks()[rank];
  row.finished = exit_code < 128;
  row.exit_code = exit_code;
  row.connected = false;
  store.set_rank(row);
}

TEST(Hang, RanksWaitedInACollectiveThatEndedByAnError) {
  // Rank 1 is killed, or leaves with code 0; the others may be over or about to be.
  for (const std::int32_t left_with : {128 + 9, 0}) {
    for (const bool all_over : {false, true}) {
      RunBuilder run(3);
      common(run, 3);
      failed_gather(run, 0, 2'000'000, 7'000'000, 1);
      failed_gather(run, 2, 2'500'000, 8'000'000, 1);
      store::Store& store = run.build();
      over(store, 1, left_with);
      over(store, 0, 1);
      if (all_over) over(store, 2, 1);
      const Hang hang = diagnose_hang(store);
      EXPECT_TRUE(hang.stands_still);
      EXPECT_EQ(hang.culprit, 1U);
      EXPECT_EQ(hang.ranks[0].waits_for, std::vector<std::uint32_t>{1});
      EXPECT_EQ(hang.ranks[2].waits_for, std::vector<std::uint32_t>{1});
      EXPECT_TRUE(hang.text.starts_with(
          "Ranks 0, 2 waited in all-gather #1 (3.91 KiB) for rank 1, since 0.001 s, until it ended by an "
          "error 5.00 ms later. "))
          << hang.text;
      // Of a rank that is killed the last events are lost.
      EXPECT_NE(hang.text.find(left_with == 0 ? "Rank 1 never came to it: it has ended"
                                              : "No event shows that rank 1 came to it: it was killed"),
                std::string::npos)
          << hang.text;
      EXPECT_EQ(hang.headline.find("Ranks 0, 2 waited for rank 1 in all-gather #1"), 0U) << hang.headline;
    }
  }
}

/// Nor where its connection ended and how it did is not known yet.
TEST(Hang, WhatALostRankDidLastIsNotKnown) {
  RunBuilder run(3);
  gathers_fail(run);
  store::Store& store = run.build();
  store::RankRow row = store.ranks()[1];
  row.connected = false;
  store.set_rank(row);
  const std::string text = diagnose_hang(store).text;
  EXPECT_NE(text.find("No event shows that rank 1 came to it: it is gone"), std::string::npos) << text;
}

/// A rank that said with which code it ended has sent all of its events: it surely never came.
TEST(Hang, ARankThatFailedByItselfNeverCame) {
  RunBuilder run(3);
  gathers_fail(run);
  store::Store& store = run.build();
  over(store, 1, 1);
  const std::string text = diagnose_hang(store).text;
  EXPECT_NE(text.find("Rank 1 never came to it: it failed with exit code 1"), std::string::npos) << text;
}

/// The library ends a collective on each rank at its own time: those on which it has not go on waiting.
TEST(Hang, RanksThatStillWaitAreApartFromThoseWhereItEndedByAnError) {
  for (const std::uint32_t first : {0U, 2U}) {
    RunBuilder run(3);
    common(run, 3);
    failed_gather(run, first, 2'000'000, 7'000'000, 1);
    open_gather(run, 2 - first, 2'000'100, 1);
    store::Store& store = run.build();
    over(store, 1, 128 + 9);
    const Hang hang = diagnose_hang(store);
    EXPECT_EQ(hang.headline.find("Ranks 0, 2 wait for rank 1"), 0U) << hang.headline;
    EXPECT_NE(hang.text.find(first == 0 ? "but on rank 0 it ended by an error 5.00 ms later."
                                        : "but on rank 2 it ended by an error 5.00 ms later."),
              std::string::npos)
        << hang.text;
    EXPECT_EQ(hang.text.find("waited"), std::string::npos) << hang.text;
  }
}

/// While it waited a collective of another group was begun and completed: it waited all the same.
TEST(Hang, WhatAnotherGroupCompletedMeanwhileHidesNoWait) {
  RunBuilder run(3);
  run.change_tables([](ev::RunTables& tables) {
    tables.groups = {{3, "other", ev::GroupPurpose::other, {0, 2}}};
  });
  common(run, 3);
  for (const std::uint32_t rank : {0U, 2U}) {
    failed_gather(run, rank, 2'000'000, 7'000'000, 1);
    const std::uint32_t code = ev::collective_code(3, ev::CollectiveScope::group, 3);
    run.instant(rank, 3'000'000, EventKind::collective_begin, StreamId::reduce, ev::group_sequence(3, 0), 0,
                code, kReduceOp, 1000, 4000);
    run.instant(rank, 4'000'000, EventKind::collective_end, StreamId::reduce, ev::group_sequence(3, 0), 0,
                code, kReduceOp, 1000, 4000);
  }
  store::Store& store = run.build();
  over(store, 1, 128 + 9);
  const std::string text = diagnose_hang(store).text;
  EXPECT_TRUE(text.starts_with("Ranks 0, 2 waited in all-gather #1 (3.91 KiB) for rank 1")) << text;
}

TEST(Hang, AnErrorThatARankGotOverIsAnEnd) {
  RunBuilder run(3);
  common(run, 3);
  for (const std::uint32_t rank : {0U, 2U}) {
    failed_gather(run, rank, 2'000'000, 7'000'000, 1);
    run.span(rank, 8'000'000, 9'000'000, EventKind::collective_begin, StreamId::gather, 2, 0, kGatherOp, 1000,
             4000);
  }
  store::Store& store = run.build();
  over(store, 1, 128 + 9);
  const std::string text = diagnose_hang(store).text;
  EXPECT_TRUE(
      text.starts_with("Rank 1 was killed by signal 9 (SIGKILL); no rank waits in a recorded collective."))
      << text;
}

/// Its events after the collective have not arrived: the others left it more than two steps ago.
TEST(Hang, ARankIsNotInACollectiveThatOthersLeftStepsAgo) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 1, 2'000'000, 1);
  for (std::uint32_t step = 1; step < 6; ++step) {
    const std::int64_t at = 2'000'000 * step;
    run.span(0, at, at + 1'000'000, EventKind::step_begin, StreamId::host, step);
    run.span(0, at + 1'000, at + 2'000, EventKind::collective_begin, StreamId::gather, step, 0, kGatherOp,
             1000, 4000);
  }
  run.instant(0, 12'500'000, EventKind::phase_begin, StreamId::compute, 5, 0, ev::kNoId,
              static_cast<std::uint8_t>(ev::Phase::optimizer));
  store::Store& store = run.build();
  store.add_message(silent(1, 3'012'000'000, store::silent_message(1, 3, 71)));
  for (const bool quiet : {false, true}) {
    const Hang hang = diagnose_hang(store, quiet ? Watched::quiet : Watched::recorded, 3'000'000'000);
    EXPECT_FALSE(hang.ranks[1].collective);
    EXPECT_TRUE(hang.ranks[1].waits_for.empty());
    EXPECT_FALSE(hang.difference);
    EXPECT_EQ(hang.stands_still, quiet);
    EXPECT_EQ(hang.culprit, quiet ? 1U : ev::kNoId);
    EXPECT_TRUE(
        hang.text.ends_with("; no rank waits in a recorded collective. Rank 0: in the phase optimizer."))
        << hang.text;
  }
}

/// Its last events were lost with it: the others came to that collective and went on.
TEST(Hang, ARankIsNotSaidToHaveWaitedWhereItWasKilledAtOnce) {
  for (const std::int64_t went_on_ns : {100'000'000, 2'000'000'000}) {
    RunBuilder run(2);
    common(run, 2);
    open_gather(run, 1, 2'000'000, 1);
    run.instant(0, 2'000'000 + went_on_ns, EventKind::tokens, StreamId::host);
    store::Store& store = run.build();
    rank_1_is_killed(store);
    const std::string text = diagnose_hang(store).text;
    if (went_on_ns < 1'000'000'000) {
      EXPECT_EQ(text, "Rank 1 was killed by signal 9 (SIGKILL); no rank waits in a recorded collective.");
    } else {
      EXPECT_NE(text.find("Rank 1 waited in "), std::string::npos) << text;
    }
  }
}

TEST(Hang, BeforeAnyRankHasConnectedThatIsSaid) {
  const store::Store store;
  const Hang hang = diagnose_hang(store, Watched::quiet, 2'000'000'000);
  EXPECT_FALSE(hang.stands_still);
  EXPECT_EQ(hang.text, "No event of any rank has arrived.");
}

TEST(Hang, WhereNobodyWaitsTheRankThatFailedFirstIsNamed) {
  RunBuilder run(2);
  common(run, 2);
  store::Store& store = run.build();
  const auto over = [&](std::uint32_t rank, std::int32_t exit_code, const char* words) {
    store::RankRow row = store.ranks()[rank];
    row.finished = exit_code < 128;
    row.exit_code = exit_code;
    row.exit_message = words;
    row.connected = false;
    store.set_rank(row);
  };
  // Rank 0 only noticed.
  over(0, 1, "rank 1 ended (killed, crashed or left early) while rank 0 waited for it");
  over(1, 128 + 9, "");
  EXPECT_EQ(diagnose_hang(store).text,
            "Rank 1 was killed by signal 9 (SIGKILL); no rank waits in a recorded collective.");
}

TEST(Hang, AReductionIsNamedByAllThatItsBucketHolds) {
  RunBuilder run(2);
  common(run, 2);
  for (const std::uint32_t param : {0U, 1U, 1U})
    run.instant(0, 1'900'000, EventKind::bucket_add, StreamId::host, 7, param);
  run.instant(0, 2'000'000, EventKind::collective_begin, StreamId::reduce, 1, 7, ev::kNoId, kReduceOp, 1000,
              4000);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet, 3'000'000'000);
  EXPECT_NE(hang.text.find("Rank 0 waits in reduce-scatter #1 for layer and 2 more parameters (3.91 KiB)"),
            std::string::npos)
      << hang.text;
}

/// Ranks in different collectives: both wait, each for the other; the first difference is what says why.
TEST(Hang, DifferentOperationsAtOnePlaceAreTheFirstDifference) {
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
  EXPECT_TRUE(hang.stands_still);
  EXPECT_NE(hang.text.find("issued different collectives (operation)"), std::string::npos) << hang.text;
  ASSERT_EQ(hang.difference->sides.size(), 2U);
  EXPECT_EQ(hang.difference->sides[0].collective->sequence, 1U);
}

TEST(Hang, DifferentSizesAreADifferenceAndTheEarliestCounts) {
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

// Nobody stands still: each computes with what the other gave for another module.
TEST(Hang, GathersOfDifferentModulesOfTheSameSizeAreADifference) {
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
  EXPECT_FALSE(hang.stands_still);
  EXPECT_NE(hang.text.find("different collectives (module): "), std::string::npos) << hang.text;
  EXPECT_NE(hang.text.find("rank 1 all-gather #1 for layer"), std::string::npos) << hang.text;
}

// What was issued and has not begun is not placed where a rank has smaller groups: its group is not recorded.
TEST(Hang, NumbersOfSmallerGroupsAreNotComparedWithThoseOfOthers) {
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

TEST(Hang, WhatEveryRankHasBegunIsNoHang) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  open_gather(run, 1, 2'000'000, 1);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  EXPECT_FALSE(hang.stands_still);
  EXPECT_FALSE(hang.difference);
}

/// A rank that waits for another one that itself waits: the one that waits for nobody is to blame.
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

/// Describes the groups to every rank.
void describe(store::Store& store, std::uint32_t world, const std::vector<ev::GroupInfo>& groups) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    ev::RunTables tables = *store.rank_tables(rank);
    tables.groups = groups;
    store.set_tables(rank, tables);
  }
}
void open_in_group(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t group,
                   ev::CollectiveOp op = ev::CollectiveOp::all_gather) {
  run.instant(rank, at, EventKind::collective_begin, StreamId::gather, 1, 0,
              ev::collective_code(0, ev::CollectiveScope::group, group), static_cast<std::uint8_t>(op), 1000,
              4000);
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

TEST(Hang, OnlyMembersOfAGroupNeverIssueItsCollectives) {
  RunBuilder run(4);
  common(run, 4);
  describe(run.build(), 4, {{0, "pair", ev::GroupPurpose::replica, {1, 2}}});
  open_in_group(run, 1, 2'000'000, 0);
  const Hang hang = diagnose_hang(run.build(), Watched::quiet);
  ASSERT_TRUE(hang.difference);
  EXPECT_EQ(hang.difference->what, "never issued");
  EXPECT_EQ(hang.difference->sides[1].ranks, std::vector<std::uint32_t>{2});
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

/// Which of several ranks is at the other end of a receive is not recorded: nobody is blamed for it.
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
  const Hang going = diagnose_hang(store, Watched::goes_on);
  EXPECT_FALSE(going.stands_still);
  EXPECT_FALSE(going.difference);
  EXPECT_EQ(going.text, "The run goes on: events come in.");
  const Hang recorded = diagnose_hang(store);
  EXPECT_FALSE(recorded.stands_still);
  EXPECT_TRUE(recorded.text.starts_with("Where the recording ends: Rank 0 waits")) << recorded.text;
}

/// All were ended from outside: what they waited for then is still told.
TEST(Hang, RanksThatWereAllEndedAreReadAsTheyStood) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  store::Store& store = run.build();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    store::RankRow row = store.ranks()[rank];
    row.exit_code = 128 + 15;
    row.connected = false;
    store.set_rank(row);
  }
  const Hang hang = diagnose_hang(store);
  EXPECT_EQ(hang.culprit, 1U);
  EXPECT_FALSE(hang.stands_still);
  EXPECT_NE(hang.text.find("for rank 1"), std::string::npos) << hang.text;
}

TEST(Hang, JsonHasEveryRank) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  const std::string json = hang_json(diagnose_hang(run.build(), Watched::quiet));
  EXPECT_NE(json.find("\"stands_still\": true"), std::string::npos);
  EXPECT_NE(json.find("\"waits_for\": [\n        1\n      ]"), std::string::npos) << json;
  for (const char* const key : {"op", "sequence", "group", "elements", "bytes"})
    EXPECT_NE(json.find(std::string("\"") + key + "\": "), std::string::npos) << key << " in " << json;
}

}  // namespace
}  // namespace shardscope::analysis
