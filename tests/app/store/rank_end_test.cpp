// How each rank ended, which one failed first, and stretches in which one was silent.
#include "app/store/rank_end.h"

#include <gtest/gtest.h>

#include <ctime>

#include "app/store/silences.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::store {
namespace {

using ev::EventKind;

struct End {
  std::int64_t last_us = 0;
  bool finished = true;
  std::int32_t exit_code = 0;
  std::string exit_message;
};

std::string blamed(const std::vector<End>& ends) {
  Store store;
  for (std::uint32_t rank = 0; rank < ends.size(); ++rank) {
    ChunkBuilder chunk(rank);
    chunk.host(0, EventKind::tokens, 0).host(ends[rank].last_us * 1000, EventKind::tokens, 0);
    store.ingest(chunk.chunk);
    RankRow row;
    row.rank = rank;
    row.finished = ends[rank].finished;
    row.exit_code = ends[rank].exit_code;
    row.exit_message = ends[rank].exit_message;
    row.events = 2;
    store.set_rank(row);
  }
  const auto first = first_failure(store);
  return first ? text_of(*first) : "none";
}

TEST(FirstFailure, IsTheRankThatDiedAndNotTheOneThatNoticed) {
  const std::string noticed =
      "rank 0 failed: rank 2 ended (killed, crashed or left early) while rank 0 waited for it in all_gather";
  EXPECT_EQ(blamed({{500, true, 0, ""}, {500, true, 0, ""}}), "none");
  // As the program that started them says.
  EXPECT_EQ(blamed({{500, true, 1, noticed}, {500, true, 1, noticed}, {400, false, 128 + 9, ""}}),
            "rank 2 was killed by signal 9 (SIGKILL)");
  // No program says it: the others name it, whatever was ended after it.
  EXPECT_EQ(blamed({{500, true, 1, noticed}, {300, false, 0, ""}, {400, false, 0, ""}}),
            "rank 2 ended without a word");
  EXPECT_EQ(blamed({{500, true, 1, "rank 0 failed: rank 3, 12 ended (killed"},
                    {1, false, 0, ""},
                    {2, false, 0, ""},
                    {400, false, 0, ""}}),
            "rank 3 ended without a word");
  // A rank that failed by itself, and others that were ended because of it, one before it could say so.
  const std::string full = "rank 1 failed: disk full";
  EXPECT_EQ(blamed({{500, true, 1, full}, {600, true, 1, full}, {300, false, 0, ""}}),
            "rank 1 failed with exit code 1");
  // Nothing is known but when their events end.
  EXPECT_EQ(blamed({{500, false, 0, ""}, {300, false, 0, ""}, {400, false, 0, ""}}),
            "rank 1 ended without a word");
}

TEST(FirstFailure, OfOneRankIsKnownWhereTheCollectorSaysThatItIsGone) {
  Store store;
  store.ingest(ChunkBuilder(0).host(0, EventKind::tokens, 0).chunk);
  RankRow row;
  row.events = 1;
  store.set_rank(row);
  EXPECT_FALSE(first_failure(store));  // its events end, as those of a cut recording do
  store.add_message({.at_ns = 1,
                     .rank = 0,
                     .severity = ev::Severity::error,
                     .text = "rank 0 (process 7) is gone without reporting its end",
                     .stands_for = 0});
  ASSERT_TRUE(first_failure(store));
  EXPECT_EQ(text_of(*first_failure(store)), "rank 0 ended without a word");
}

TEST(Silences, AStoppedRankIsNoFailedOneUntilItsConnectionIsGone) {
  Store store;
  store.ingest(ChunkBuilder(0).host(0, EventKind::tokens, 0).chunk);
  RankRow row;
  row.events = 1;
  row.connected = true;
  store.set_rank(row);
  const auto add = [&](std::int64_t at_ns, ev::Severity severity, const std::string& text) {
    store.add_message({.at_ns = at_ns, .rank = 0, .severity = severity, .text = text, .stands_for = 0});
  };
  constexpr std::int64_t kOneSecond = 1'000'000'000;
  add(8 * kOneSecond, ev::Severity::warning, silent_message(0, 2.5, 71));
  EXPECT_EQ(text_of(rank_end(store, store.ranks()[0])), "rank 0 is stopped");
  EXPECT_FALSE(first_failure(store));
  EXPECT_EQ(silence_now(store, 0)->begin_ns, 5'500'000'000);
  row.last_ns = 6 * kOneSecond;
  store.set_rank(row);
  EXPECT_EQ(silence_now(store, 0)->begin_ns, 6 * kOneSecond) << "it lived at its last event";
  EXPECT_EQ(silences(store).at(0).begin_ns, 6 * kOneSecond) << "in the list as by itself";
  add(11 * kOneSecond, ev::Severity::warning, silent_message(0, 3, 0));  // as another collector may say too
  EXPECT_EQ(silence_now(store, 0)->begin_ns, 6 * kOneSecond) << "as in the first text";
  EXPECT_TRUE(silence_now(store, 0)->stopped);
  ASSERT_EQ(silences(store).size(), 1U);
  EXPECT_EQ(silences(store)[0].begin_ns, 6 * kOneSecond);
  row.last_ns = 0;
  row.connected = false;  // as in a recording that ends there
  store.set_rank(row);
  EXPECT_EQ(rank_end(store, store.ranks()[0]).how, RankEnd::How::stopped);
  add(12 * kOneSecond, ev::Severity::warning, resumption_message(0, 6.5, Resumption::on_this_host));
  EXPECT_FALSE(silence_now(store, 0));
  ASSERT_EQ(silences(store).size(), 1U);
  EXPECT_EQ(silences(store)[0].begin_ns, 5'500'000'000);
  EXPECT_EQ(silences(store)[0].end_ns, 12 * kOneSecond);
  row.last_ns = 13 * kOneSecond;
  store.set_rank(row);
  EXPECT_EQ(silences(store)[0].begin_ns, 5'500'000'000) << "what came after it does not shorten it";
  EXPECT_TRUE(silences(store)[0].stopped);
  add(20 * kOneSecond, ev::Severity::warning, silent_message(0, 6, 0));
  EXPECT_EQ(text_of(rank_end(store, store.ranks()[0])), "rank 0 is silent, perhaps stopped");
  // What another rank or a user writes is none.
  add(21 * kOneSecond, ev::Severity::info, "rank 1 sends again after 3 s");
  add(21 * kOneSecond, ev::Severity::info, "rank 0 sends again after a while");
  EXPECT_TRUE(silence_now(store, 0));
  add(22 * kOneSecond, ev::Severity::error, "rank 0 closed its connection without reporting its end");
  EXPECT_EQ(rank_end(store, store.ranks()[0]).how, RankEnd::How::silent);
  EXPECT_FALSE(silence_now(store, 0));
  ASSERT_EQ(silences(store).size(), 2U);
  EXPECT_EQ(silences(store)[1].end_ns, 22 * kOneSecond);
}

/// Its rank was stopped, then killed, and started anew.
TEST(Silences, ARankThatWasRestartedRuns) {
  constexpr std::int64_t kOneSecond = 1'000'000'000;
  const Message silent{8 * kOneSecond, 0, ev::Severity::warning, silent_message(0, 2.5, 71), 0};
  const Message gone{9 * kOneSecond, 0, ev::Severity::error, gone_message(0, "closed its connection"), 0};
  const Message restarted{10 * kOneSecond, 0, ev::Severity::warning,
                          resumption_message(0, 3, Resumption::restarted), 0};
  for (const Message& end : {gone, restarted}) {
    Store store;
    store.ingest(ChunkBuilder(0).host(0, EventKind::tokens, 0).chunk);
    RankRow row;
    row.events = 1;
    row.connected = true;
    store.set_rank(row);
    store.add_message(silent);
    EXPECT_EQ(rank_end(store, store.ranks()[0]).how, RankEnd::How::stopped);
    store.add_message(end);
    EXPECT_EQ(rank_end(store, store.ranks()[0]).how, RankEnd::How::running) << end.text;
    ASSERT_EQ(silences(store).size(), 1U);
    EXPECT_EQ(silences(store)[0].begin_ns, 5'500'000'000) << "as in the first of the two texts";
    EXPECT_EQ(silences(store)[0].end_ns, end.at_ns);
  }
}

/// A window asks in each frame. Each rank's messages searched for each rank would take seconds.
TEST(FirstFailure, OfThousandsOfRanksWithAMessageEachIsFoundInOnePass) {
  constexpr std::uint32_t kRanks = 4096;
  Store store;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    RankRow row;
    row.rank = rank;
    row.events = 1;
    row.last_ns = rank;
    store.set_rank(row);
    store.add_message({rank, rank, ev::Severity::error, gone_message(rank, "closed its connection"), 0});
  }
  const auto cpu_s = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  const double begin = cpu_s();
  const auto first = first_failure(store);
  const double took = cpu_s() - begin;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rank, 0U);
  EXPECT_LT(took, 0.25) << "16 million messages looked at take longer, also without a sanitizer";
}

TEST(FirstFailure, MarksSayWhatIsKnown) {
  RankEnd end{
      .rank = 0, .how = RankEnd::How::killed, .exit_code = 137, .at_ns = 1'234'000'000, .exit_message = {}};
  EXPECT_EQ(mark_of(end), "rank ended here (killed by signal 9 (SIGKILL))");
  end.how = RankEnd::How::silent;
  EXPECT_EQ(mark_of(end), "no events after 1.234 s");
  end.how = RankEnd::How::running;
  EXPECT_EQ(mark_of(end), "");
}

}  // namespace
}  // namespace shardscope::store
