// Spans from begin and end events: nesting, order, and what is shown when events are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/app/store/event_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
using ev::StreamId;
constexpr LaneId kHost{0, StreamId::host};

ev::RunTables small_tables() {
  ev::RunTables tables;
  tables.stage = 3;
  for (std::uint32_t m = 0; m < 4; ++m) {  // 0 holds 1 and 3, 1 holds 2
    ev::ModuleInfo module;
    module.id = m;
    module.parent = m == 0 ? ev::kNoId : m == 2 ? 1U : 0U;
    tables.modules.push_back(module);
  }
  return tables;
}

TEST(Lane, NestsByDepth) {
  Store store;
  store.ingest(ChunkBuilder()
                   .compute(100, EventKind::module_begin, 0)
                   .compute(110, EventKind::module_begin, 1)
                   .compute(120, EventKind::module_end, 1)
                   .compute(120, EventKind::module_begin, 3)
                   .compute(150, EventKind::module_end, 3)
                   .compute(160, EventKind::module_end, 0)
                   .chunk);
  ASSERT_EQ(store.depth_count(kCompute), 2);
  ASSERT_EQ(store.spans(kCompute, 0).size(), 1U);
  EXPECT_EQ(store.spans(kCompute, 0)[0].end_ns, 60);
  ASSERT_EQ(store.spans(kCompute, 1).size(), 2U);
  EXPECT_EQ(store.spans(kCompute, 1)[1].begin_ns, 20);
  EXPECT_EQ(store.spans(kCompute, 1)[1].end_ns, 50);
  EXPECT_THAT(store.lanes(), testing::ElementsAre(kCompute));
}

TEST(Lane, OpenSpanStaysOpenUntilItsEndArrives) {
  Store store;
  store.ingest(
      ChunkBuilder().compute(0, EventKind::module_begin, 0).compute(10, EventKind::module_begin, 1).chunk);
  EXPECT_EQ(store.spans(kCompute, 1)[0].end_ns, kOpen);
  std::vector<Density> columns(10);
  store.density(kCompute, 0, 0, 10, columns);
  EXPECT_FLOAT_EQ(columns[9].busy, 1);
  store.ingest(
      ChunkBuilder(0, 1).compute(20, EventKind::module_end, 1).compute(30, EventKind::module_end, 0).chunk);
  EXPECT_EQ(store.spans(kCompute, 0)[0].end_ns, 30);
  EXPECT_EQ(store.spans(kCompute, 1)[0].end_ns, 20);
}

TEST(Lane, CollectiveIsMarkedWhenEveryRankArrived) {
  Store store;
  store.ingest(ChunkBuilder()
                   .add(0, EventKind::collective_begin, StreamId::gather, 7)
                   .add(40, EventKind::collective_entered, StreamId::gather, 7)
                   .add(90, EventKind::collective_end, StreamId::gather, 7)
                   .chunk);
  const Span span = store.spans({0, StreamId::gather}, 0)[0];
  EXPECT_EQ(span.mark_ns, 40);
  EXPECT_EQ(span.end_ns, 90);
  EXPECT_TRUE(store.instants(0).empty());
}

TEST(Lane, HowACollectiveEndedIsKnownFromItsEndOnly) {
  const auto code_of = [](std::uint32_t of_end) {
    ChunkBuilder events;
    events.add(0, EventKind::collective_begin, StreamId::gather, 7)
        .add(90, EventKind::collective_end, StreamId::gather, 7);
    const std::uint32_t of_begin = ev::collective_code(1, ev::CollectiveScope::world, 2);
    events.chunk.events[0].c = of_begin;
    events.chunk.events[1].c = of_begin | of_end;
    Store store;
    store.ingest(events.chunk);
    return store.spans({0, StreamId::gather}, 0)[0].c ^ of_begin;
  };
  EXPECT_EQ(code_of(0), 0U);
  for (const std::uint32_t how : {ev::kEndIsBound, ev::kEndedByError, ev::kEndIsBound | ev::kEndedByError})
    EXPECT_EQ(code_of(how), how);
}

TEST(Lane, EndWithoutBeginMakesNoSpan) {
  Store store;
  store.ingest(
      ChunkBuilder().compute(0, EventKind::module_end, 4).compute(5, EventKind::phase_begin, 1).chunk);
  ASSERT_EQ(store.depth_count(kCompute), 1);
  EXPECT_EQ(store.spans(kCompute, 0).size(), 1U);
}

TEST(Lane, AfterADropAnOpenSpanIsShownOnlyAsFarAsItIsKnown) {
  Store store;
  store.set_tables(0, small_tables());
  store.ingest(
      ChunkBuilder().compute(0, EventKind::module_begin, 0).compute(10, EventKind::module_begin, 1).chunk);
  ChunkBuilder after(0, 1);
  after.chunk.dropped_before = 5;
  after.compute(100, EventKind::module_begin, 3);  // cannot be inside 1: the end of 1 was dropped
  store.ingest(after.chunk);
  EXPECT_EQ(store.spans(kCompute, 1)[0].end_ns, 10);  // not 100, and not open
  EXPECT_EQ(store.spans(kCompute, 1)[1].a, 3U);       // 3 is inside 0, which it belongs to
  EXPECT_EQ(store.spans(kCompute, 0)[0].end_ns, 10);  // shown cut until its end proves otherwise
  store.ingest(
      ChunkBuilder(0, 2).compute(120, EventKind::module_end, 3).compute(130, EventKind::module_end, 0).chunk);
  EXPECT_EQ(store.spans(kCompute, 1)[1].end_ns, 120);
  EXPECT_EQ(store.spans(kCompute, 0)[0].end_ns, 10);  // 130 may be the end of its run in the next step
  ASSERT_EQ(store.gaps().size(), 1U);
  EXPECT_EQ(store.gaps()[0].begin_ns, 10);
  EXPECT_EQ(store.gaps()[0].end_ns, 100);
  EXPECT_EQ(store.gaps()[0].events, 5U);
  EXPECT_EQ(store.dropped_count(), 5U);
}

TEST(Lane, AnEndWithIdsOfItsOwnClosesItsSpanAcrossAGap) {
  Store store;
  store.ingest(ChunkBuilder().host(0, EventKind::step_begin, 4).chunk);
  ChunkBuilder after(0, 1);
  after.chunk.dropped_before = 1;
  after.host(50, EventKind::gate, 1);
  store.ingest(after.chunk);
  EXPECT_EQ(store.spans(kHost, 0)[0].end_ns, 0);
  store.ingest(ChunkBuilder(0, 2).host(90, EventKind::step_end, 4).chunk);
  EXPECT_EQ(store.spans(kHost, 0)[0].end_ns, 90);
}

TEST(Lane, ANewStepProvesThatTheOldOneIsOver) {
  Store store;
  store.ingest(
      ChunkBuilder().host(0, EventKind::step_begin, 0).host(10, EventKind::micro_step_begin, 0).chunk);
  ChunkBuilder after(0, 1);
  after.chunk.lost_before = 1;
  after.host(100, EventKind::step_begin, 1).host(180, EventKind::step_end, 1);
  store.ingest(after.chunk);
  ASSERT_EQ(store.spans(kHost, 0).size(), 2U);
  EXPECT_EQ(store.spans(kHost, 0)[0].end_ns, 10);
  EXPECT_EQ(store.spans(kHost, 0)[1].begin_ns, 100);
  EXPECT_EQ(store.spans(kHost, 0)[1].end_ns, 180);
  EXPECT_EQ(store.gaps()[0].events, 0U);  // unknown how many
  EXPECT_EQ(store.steps()[0].end_ns, kOpen);
}

TEST(Lane, RandomDropsNeverMakeAFalseSpan) {
  // Every span of the damaged store must lie within the true span of the same identity.
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 6, .chunk_events = 300});
  Store truth;
  fill_store(truth, run);
  std::mt19937_64 random(5);
  for (int round = 0; round < 10; ++round) {
    Store damaged;
    for (const ev::RunTables& tables : run.tables) damaged.set_tables(tables.rank, tables);
    std::size_t left_out = 0;
    std::vector<std::uint64_t> sequence(2, 0), dropped(2, 0);
    for (Chunk chunk : run.chunks) {
      const std::uint32_t rank = chunk.rank;
      if (random() % 5 == 0 && chunk.sequence > 0) {
        dropped[rank] += chunk.events.size();
        ++left_out;
        continue;
      }
      chunk.sequence = sequence[rank]++;
      chunk.dropped_before = dropped[rank];
      dropped[rank] = 0;
      damaged.ingest(chunk);
    }
    ASSERT_GT(left_out, 0U);
    EXPECT_GT(damaged.gaps().size(), 0U);
    std::size_t whole = 0;
    for (const LaneId lane : damaged.lanes()) {
      std::vector<Span> all;
      for (std::uint8_t d = 0; d < truth.depth_count(lane); ++d) {
        const std::vector<Span> row = truth.spans(lane, d);
        all.insert(all.end(), row.begin(), row.end());
      }
      for (std::uint8_t d = 0; d < damaged.depth_count(lane); ++d) {
        std::int64_t last_end = 0;
        for (const Span& span : damaged.spans(lane, d)) {
          EXPECT_GE(span.begin_ns, last_end);  // a row never overlaps itself
          last_end = span.end_ns;
          bool found = false;
          for (const Span& real : all) {
            found = found ||
                    (real.kind == span.kind && real.a == span.a && real.code == span.code &&
                     real.begin_ns <= span.begin_ns && (span.end_ns == kOpen || span.end_ns <= real.end_ns));
            whole += real.begin_ns == span.begin_ns && real.end_ns == span.end_ns ? 1 : 0;
          }
          ASSERT_TRUE(found) << ev::name_of(span.kind) << " " << span.a << " " << span.begin_ns;
        }
      }
    }
    EXPECT_GT(whole, 100U);
  }
}

TEST(Lane, VisibleFindsWhatOverlaps) {
  const Store store = make_synthetic_store();
  std::mt19937_64 random(9);
  for (const LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) {
      const auto spans = store.spans(lane, d);
      for (int i = 0; i < 20; ++i) {
        const auto begin = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
        const std::int64_t end = begin + static_cast<std::int64_t>(random() % 20'000'000) + 1;
        const std::vector<Span> seen = store.spans(lane, d, begin, end);
        std::size_t next = 0;
        for (const Span& span : spans) {
          const bool is_seen = next < seen.size() && seen[next].begin_ns == span.begin_ns &&
                               seen[next].end_ns == span.end_ns && seen[next].a == span.a;
          if (is_seen) ++next;
          if (span.end_ns > begin && span.begin_ns < end) {
            EXPECT_TRUE(is_seen) << span.begin_ns;
          }
          if (is_seen) {
            EXPECT_TRUE(span.end_ns >= begin && span.begin_ns < end) << span.begin_ns;
          }
        }
        EXPECT_EQ(next, seen.size());
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::store
