// Why a run hangs where ranks ended, were stopped, or a collective ended by an error.
#include <gtest/gtest.h>

#include "app/analysis/hang/hang.h"
#include "tests/app/analysis/hang/hang_runs.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(HangEnds, ARankThatEndedEarlyIsNamedWithItsEnd) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  store::Store& store = run.build();
  store::RankRow row = store.ranks()[1];
  row.finished = true;
  row.connected = false;
  store.set_rank(row);
  const Hang hang = diagnose_hang(store);
  EXPECT_TRUE(hang.hung);
  EXPECT_EQ(hang.culprit, 1U);
  EXPECT_EQ(hang.ranks[1].how, RankState::How::ended);
  EXPECT_NE(hang.text.find("Rank 1 never entered it: it has ended, with code 0"), std::string::npos)
      << hang.text;
}

TEST(HangEnds, AKilledRankIsNamedWithItsSignal) {
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

TEST(HangEnds, AStoppedRankIsNotGone) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  run.instant(1, 1'500'000, EventKind::module_begin, StreamId::compute, 1, 0);
  store::Store& store = run.build();
  store.add_message(silent(1, 4'000'000'000, store::silent_message(1, 3, 71)));
  const Hang hang = diagnose_hang(store);
  EXPECT_TRUE(hang.hung);
  EXPECT_EQ(hang.ranks[1].how, RankState::How::stopped);
  EXPECT_EQ(hang.ranks[1].since_ns, 1'000'000'000);
  EXPECT_NE(hang.text.find("it is stopped since 1.000 s, last seen in layer (forward)"), std::string::npos)
      << hang.text;
}

TEST(HangEnds, AStopThatIsOverIsSaidOfARecording) {
  RunBuilder run(2);
  common(run, 2);
  store::Store& store = run.build();
  store.add_message(silent(1, 4'000'000'000, store::silent_message(1, 3, 0)));
  store.add_message(
      silent(1, 22'000'000'000, store::resumption_message(1, 21, store::Resumption::on_this_host)));
  const Hang hang = diagnose_hang(store);
  EXPECT_FALSE(hang.hung);
  ASSERT_EQ(hang.stops.size(), 1U);
  EXPECT_NE(hang.text.find("Rank 1 was frozen from 1.000 s to 22.000 s (21"), std::string::npos) << hang.text;
}

// For a part of it there was no process, or only the network was down.
TEST(HangEnds, ASilenceThatEndsOtherwiseIsNotCalledFrozen) {
  for (const auto how : {store::Resumption::restarted, store::Resumption::on_another_host}) {
    RunBuilder run(2);
    common(run, 2);
    store::Store& store = run.build();
    store.add_message(silent(1, 4'000'000'000, store::silent_message(1, 3, 0)));
    store.add_message(silent(1, 22'000'000'000, store::resumption_message(1, 21, how)));
    const std::string text = diagnose_hang(store).text;
    EXPECT_NE(text.find("Rank 1 sent nothing from 1.000 s to 22.000 s (21"), std::string::npos) << text;
    EXPECT_EQ(text.find("was frozen from"), std::string::npos) << text;
  }
}

TEST(HangEnds, WhereAllAreOverTheKilledOneIsWhyTheyWaited) {
  RunBuilder run(2);
  common(run, 2);
  open_gather(run, 0, 2'000'000, 1);
  store::Store& store = run.build();
  rank_1_is_killed(store);
  const Hang hang = diagnose_hang(store);
  EXPECT_TRUE(hang.hung);
  EXPECT_EQ(hang.text.find("not recorded"), std::string::npos) << hang.text;
  EXPECT_NE(hang.text.find("it was killed by signal 9 (SIGKILL)"), std::string::npos) << hang.text;
}

TEST(HangEnds, RanksWaitedInACollectiveThatEndedByAnError) {
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
      EXPECT_TRUE(hang.hung);
      EXPECT_EQ(hang.culprit, 1U);
      EXPECT_EQ(hang.ranks[0].waits_for, std::vector<std::uint32_t>{1});
      EXPECT_EQ(hang.ranks[2].waits_for, std::vector<std::uint32_t>{1});
      EXPECT_TRUE(hang.text.starts_with(
          "Ranks 0, 2 waited in all-gather #1 (3.91 KiB) for rank 1, since 0.001 s, until it ended by an "
          "error 5.00 ms later. "))
          << hang.text;
      // Of a rank that is killed the last events are lost.
      EXPECT_NE(hang.text.find(left_with == 0 ? "Rank 1 never entered it: it has ended"
                                              : "No event shows that rank 1 entered it: it was killed"),
                std::string::npos)
          << hang.text;
      EXPECT_EQ(hang.headline.find("Ranks 0, 2 waited for rank 1 in all-gather #1"), 0U) << hang.headline;
    }
  }
}

/// Nor where its connection ended and how it did is not known yet.
TEST(HangEnds, WhatALostRankDidLastIsNotKnown) {
  RunBuilder run(3);
  gathers_fail(run);
  store::Store& store = run.build();
  store::RankRow row = store.ranks()[1];
  row.connected = false;
  store.set_rank(row);
  const std::string text = diagnose_hang(store).text;
  EXPECT_NE(text.find("No event shows that rank 1 entered it: it is gone"), std::string::npos) << text;
}

/// A rank that said with which code it ended has sent all of its events: it surely never came.
TEST(HangEnds, ARankThatFailedByItselfNeverCame) {
  RunBuilder run(3);
  gathers_fail(run);
  store::Store& store = run.build();
  over(store, 1, 1);
  const std::string text = diagnose_hang(store).text;
  EXPECT_NE(text.find("Rank 1 never entered it: it failed with exit code 1"), std::string::npos) << text;
}

/// The library ends a collective on each rank at its own time: those on which it has not go on waiting.
TEST(HangEnds, RanksThatStillWaitAreApartFromThoseWhereItEndedByAnError) {
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
TEST(HangEnds, WhatAnotherGroupCompletedMeanwhileHidesNoWait) {
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

TEST(HangEnds, AnErrorThatARankGotOverIsAnEnd) {
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
TEST(HangEnds, ARankIsNotInACollectiveThatOthersLeftStepsAgo) {
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
    EXPECT_EQ(hang.hung, quiet);
    EXPECT_EQ(hang.culprit, quiet ? 1U : ev::kNoId);
    EXPECT_TRUE(
        hang.text.ends_with("; no rank waits in a recorded collective. Rank 0: in the phase optimizer."))
        << hang.text;
  }
}

/// Its last events were lost with it: the others came to that collective and went on.
TEST(HangEnds, ARankIsNotSaidToHaveWaitedWhereItWasKilledAtOnce) {
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

TEST(HangEnds, WhereNobodyWaitsTheRankThatFailedFirstIsNamed) {
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

/// All were ended from outside: what they waited for then is still reported.
TEST(HangEnds, RanksThatWereAllEndedAreReadAsTheyStood) {
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
  EXPECT_FALSE(hang.hung);
  EXPECT_NE(hang.text.find("for rank 1"), std::string::npos) << hang.text;
}

}  // namespace
}  // namespace shardscope::analysis
