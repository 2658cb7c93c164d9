// Unmatched span ends: how many, of what, and whether something that is missing explains them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "app/store/losses.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {

bool operator==(const Store::UnmatchedEnds& a, const Store::UnmatchedEnds& b) {
  return std::tie(a.rank, a.kind, a.count, a.explained) == std::tie(b.rank, b.kind, b.count, b.explained);
}
void PrintTo(const Store::UnmatchedEnds& ends, std::ostream* out) {
  *out << "rank " << ends.rank << ": " << ends.count << " " << ev::name_of(ends.kind) << ", "
       << ends.explained << " explained";
}

namespace {

using ev::EventKind;
using Ends = std::vector<Store::UnmatchedEnds>;
using testing::ElementsAre;
using testing::IsEmpty;

/// Step `step` from begin to end, with a module in it.
ChunkBuilder& whole_step(ChunkBuilder& chunk, std::uint32_t step) {
  const std::int64_t at = step * 100;
  return chunk.host(at, EventKind::step_begin, step)
      .compute(at + 10, EventKind::module_begin, 0)
      .compute(at + 20, EventKind::module_end, 0)
      .host(at + 90, EventKind::step_end, step);
}

ChunkBuilder after_a_step() {
  ChunkBuilder chunk;
  whole_step(chunk, 0);
  return chunk;
}

Ends ends_of(const Chunk& chunk) {
  Store store;
  store.ingest(chunk);
  return store.unmatched_ends();
}

TEST(UnmatchedEnds, AreCountedByRankAndKind) {
  Store store;
  store.ingest(after_a_step()
                   .compute(110, EventKind::module_end, 3)
                   .compute(120, EventKind::module_end, 4)
                   .add(130, EventKind::collective_end, ev::StreamId::gather, 7)
                   .chunk);
  ChunkBuilder other(2);
  whole_step(other, 0);
  store.ingest(other.compute(110, EventKind::phase_end, 0).chunk);
  EXPECT_THAT(store.unmatched_ends(), ElementsAre(Store::UnmatchedEnds{0, EventKind::module_end, 2, 0},
                                                  Store::UnmatchedEnds{0, EventKind::collective_end, 1, 0},
                                                  Store::UnmatchedEnds{2, EventKind::phase_end, 1, 0}));
  EXPECT_EQ(unmatched_ends_by_rank(store.unmatched_ends()),
            "rank 0: 2 module_end, 1 collective_end; rank 2: 1 phase_end");
  const Losses losses = losses_of(store);
  EXPECT_TRUE(losses.any());
  EXPECT_EQ(text_of(losses), "0 dropped, 0 messages lost, 4 unmatched span ends");
}

/// A program that never emits the begins is found, however its lanes look at first.
TEST(UnmatchedEnds, TheBeginningOfTheEventsExplainsOneOfAKind) {
  ChunkBuilder chunk;
  chunk.add(1, EventKind::collective_end, ev::StreamId::gather, 1)
      .add(2, EventKind::collective_end, ev::StreamId::gather, 2)
      .compute(3, EventKind::module_end, 2)
      .compute(4, EventKind::module_end, 1)  // they lay in one another
      .compute(5, EventKind::phase_begin, 0)
      .compute(6, EventKind::module_end, 0);
  EXPECT_THAT(ends_of(chunk.chunk), ElementsAre(Store::UnmatchedEnds{0, EventKind::module_end, 3, 2},
                                                Store::UnmatchedEnds{0, EventKind::collective_end, 2, 1}));
}

TEST(UnmatchedEnds, AModuleWhoseBeginWasReceivedLiesInNoneWithoutOne) {
  ChunkBuilder chunk;
  chunk.compute(1, EventKind::module_begin, 1).compute(2, EventKind::module_end, 0);
  EXPECT_THAT(ends_of(chunk.chunk), ElementsAre(Store::UnmatchedEnds{0, EventKind::module_end, 1, 0}));
}

TEST(UnmatchedEnds, AStepThatWasReceivedWholeLeavesNothingToExplain) {
  EXPECT_THAT(ends_of(after_a_step().add(110, EventKind::collective_end, ev::StreamId::gather, 1).chunk),
              ElementsAre(Store::UnmatchedEnds{0, EventKind::collective_end, 1, 0}));
}

TEST(UnmatchedEnds, WhatIsMissingExplainsThemUpToWhereItMayHaveBeen) {
  Store store;
  store.ingest(after_a_step().chunk);
  ChunkBuilder after(0, 1);
  after.chunk.dropped_before = 9;
  after.chunk.missing_begin_ns = 100;
  after.chunk.missing_end_ns = 150;
  after.compute(110, EventKind::module_end, 2)
      .compute(120, EventKind::fetch_wait_end, 2)
      .compute(130, EventKind::fetch_wait_end, 3)
      .compute(160, EventKind::fetch_wait_end, 4)  // perhaps
      .compute(170, EventKind::fetch_wait_end, 5)  // not another
      .host(200, EventKind::step_begin, 2)
      .host(290, EventKind::step_end, 2)
      .compute(300, EventKind::module_end, 1);
  store.ingest(after.chunk);
  EXPECT_THAT(store.unmatched_ends(), ElementsAre(Store::UnmatchedEnds{0, EventKind::module_end, 2, 1},
                                                  Store::UnmatchedEnds{0, EventKind::fetch_wait_end, 4, 3}));
  const Losses losses = losses_of(store);
  EXPECT_EQ(
      text_of(losses),
      "9 dropped, 0 messages lost, 6 unmatched span ends, 4 of them explained: events are missing there");
  EXPECT_EQ(unmatched_ends_text(1, 1), "1 unmatched span end, explained: events are missing there");
}

/// Messages were lost somewhere between those of this chunk.
TEST(UnmatchedEnds, ALostMessageExplainsThemInTheWholeChunk) {
  Store store;
  store.ingest(after_a_step().chunk);
  ChunkBuilder after(0, 1);
  after.chunk.lost_before = 1;
  whole_step(after, 1).compute(195, EventKind::module_end, 1);
  store.ingest(after.chunk);
  EXPECT_THAT(store.unmatched_ends(), ElementsAre(Store::UnmatchedEnds{0, EventKind::module_end, 1, 1}));
}

/// From phases to modules and back and again, in the middle of modules.
TEST(UnmatchedEnds, ADetailThatWasTooLowExplainsThem) {
  constexpr auto kModules = static_cast<std::uint8_t>(ev::Detail::modules),
                 kPhases = static_cast<std::uint8_t>(ev::Detail::phases);
  ChunkBuilder chunk;
  for (std::uint32_t step = 0; step < 3; ++step) whole_step(chunk, step);
  chunk.host(300, EventKind::step_begin, 3)
      .compute(301, EventKind::module_begin, 0)
      .compute(302, EventKind::module_begin, 1)
      .host(310, EventKind::detail_changed, kModules, kPhases)
      .host(320, EventKind::detail_changed, kPhases, kModules)
      .compute(330, EventKind::module_begin, 3)
      .compute(340, EventKind::module_end, 3)
      .compute(350, EventKind::module_end, 2)
      .compute(360, EventKind::fetch_wait_end, 2)
      .host(390, EventKind::step_end, 3);
  whole_step(chunk, 4).compute(500, EventKind::module_end, 2).host(510, EventKind::micro_step_end, 0);
  Store store;
  store.ingest(chunk.chunk);
  EXPECT_THAT(store.unmatched_ends(), ElementsAre(Store::UnmatchedEnds{0, EventKind::micro_step_end, 1, 0},
                                                  Store::UnmatchedEnds{0, EventKind::module_end, 2, 1},
                                                  Store::UnmatchedEnds{0, EventKind::fetch_wait_end, 1, 1}));
}

TEST(UnmatchedEnds, AWholeRunHasNone) {
  for (const std::int32_t stage : {1, 3}) {
    const Store store = make_synthetic_store({.world = 2, .stage = stage, .steps = 4});
    EXPECT_THAT(store.unmatched_ends(), IsEmpty()) << stage;
  }
}

TEST(UnmatchedEnds, RandomDropsThatAreReportedExplainAllOfThem) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 6, .chunk_events = 300});
  std::mt19937_64 random(7);
  std::uint64_t explained = 0;
  for (int round = 0; round < 20; ++round) {
    Store damaged;
    for (const ev::RunTables& tables : run.tables) damaged.set_tables(tables.rank, tables);
    std::vector<std::uint64_t> sequence(2, 0), dropped(2, 0);
    for (Chunk chunk : run.chunks) {
      if (random() % 5 == 0) {
        dropped[chunk.rank] += chunk.events.size();
        continue;
      }
      chunk.sequence = sequence[chunk.rank]++;
      chunk.dropped_before = std::exchange(dropped[chunk.rank], 0);
      damaged.ingest(chunk);
    }
    const Ends reported = damaged.unmatched_ends();
    for (const Store::UnmatchedEnds& ends : reported) {
      EXPECT_EQ(ends.count, ends.explained) << round << " " << ev::name_of(ends.kind);
      explained += ends.explained;
    }
  }
  EXPECT_GT(explained, 100U);
}

TEST(UnmatchedEnds, ABeginThatWasNeverEmittedIsFoundForEveryKind) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 6, .chunk_events = 300});
  std::map<EventKind, int> tried;
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    SyntheticRun broken = run;
    const std::size_t half = broken.chunks.size() / 2;
    Chunk& chunk = broken.chunks[half + random() % (half / 2)];
    const std::size_t from = random() % chunk.events.size();
    std::size_t at = from;
    while (at < chunk.events.size() && !ev::is_begin(chunk.events[at].kind)) ++at;
    if (at == chunk.events.size()) continue;
    const EventKind kind = chunk.events[at].kind;
    chunk.events.erase(chunk.events.begin() + static_cast<std::ptrdiff_t>(at));
    Store store;
    fill_store(store, broken);
    EXPECT_THAT(store.unmatched_ends(), ElementsAre(Store::UnmatchedEnds{0, ev::end_of(kind), 1, 0}))
        << ev::name_of(kind);
    ++tried[kind];
  }
  EXPECT_GT(tried[EventKind::module_begin], 0);
  EXPECT_GT(tried[EventKind::collective_begin], 0);
  EXPECT_GT(tried[EventKind::fetch_wait_begin], 0);
}

/// Sealed or not, with events or only their totals.
TEST(UnmatchedEnds, AreTheSameHoweverMuchIsKept) {
  SyntheticRun run = make_synthetic_run({.world = 2, .steps = 6, .chunk_events = 300});
  std::erase_if(run.chunks[run.chunks.size() / 2].events,
                [](const ev::Event& event) { return event.kind == EventKind::module_begin; });
  Store whole;
  whole.seal_after(SIZE_MAX);
  fill_store(whole, run);
  const Ends expected = whole.unmatched_ends();
  ASSERT_EQ(expected.size(), 1U);
  EXPECT_GT(expected[0].count, 1U);
  EXPECT_EQ(expected[0].explained, 0U);
  Store sealed;
  sealed.seal_after(500);
  fill_store(sealed, run);
  EXPECT_EQ(sealed.unmatched_ends(), expected);
  Store totals(Keep::totals);
  fill_store(totals, run);
  EXPECT_EQ(totals.unmatched_ends(), expected);
}

}  // namespace
}  // namespace shardscope::store
