// State at a time: parameter status and memory, against a replay from the beginning; steps, gates, clocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/app/store/event_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
using ev::MemoryCategory;
using ev::MemoryPool;

TEST(Status, EqualsAReplayAtAnyTime) {
  const Store store = make_synthetic_store({.steps = 10});
  const std::size_t params = store.tables().params.size();
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
    const auto rank = static_cast<std::uint32_t>(i % 4);
    std::vector<ParamState> replay(params), states(params);
    for (const ev::Event& event : store.instants(rank)) {
      if (static_cast<std::int64_t>(event.ticks) > at) break;
      if (event.kind != EventKind::param_status) continue;
      replay[event.a].status = event.code & 0xF;
      replay[event.a].since_ns = static_cast<std::int64_t>(event.ticks);
      replay[event.a].module = event.b;
    }
    store.param_states(rank, at, states);
    for (std::uint32_t p = 0; p < params; ++p) {
      ASSERT_EQ(states[p].status, replay[p].status);
      ASSERT_EQ(states[p].since_ns, replay[p].since_ns);
      ASSERT_EQ(states[p].module, replay[p].module);
      const ParamState one = store.param_state(rank, p, at);
      ASSERT_EQ(one.status, replay[p].status);
      ASSERT_EQ(one.since_ns, replay[p].since_ns);
    }
  }
}

TEST(Status, HistoryHoldsEveryChangeInOrder) {
  const Store store = make_synthetic_store();
  std::size_t changes = 0;
  for (const ev::Event& event : store.instants(1)) changes += event.kind == EventKind::param_status ? 1 : 0;
  std::size_t listed = 0;
  for (std::uint32_t p = 0; p < store.tables().params.size(); ++p) {
    const auto history = store.status_history(1, p);
    EXPECT_TRUE(std::is_sorted(history.begin(), history.end(),
                               [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; }));
    listed += history.size();
  }
  EXPECT_EQ(listed, changes);
  EXPECT_GT(changes, 500U);
}

TEST(Status, OrderOfArrivalDoesNotMatter) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 8, .chunk_events = 700});
  Store whole;
  fill_store(whole, run);
  Store drained;
  fill_store(drained, drained_by_thread(run));
  ASSERT_EQ(drained.instants(0).size(), whole.instants(0).size());
  std::vector<ParamState> a(run.tables[0].params.size()), b(a.size());
  for (std::int64_t at = 0; at < whole.end_ns(); at += whole.end_ns() / 200) {
    whole.param_states(0, at, a);
    drained.param_states(0, at, b);
    for (std::size_t p = 0; p < a.size(); ++p) ASSERT_EQ(a[p].status, b[p].status) << at;
    ASSERT_EQ(whole.memory_at(0, MemoryPool::device, at).bytes,
              drained.memory_at(0, MemoryPool::device, at).bytes);
  }
  for (std::uint32_t p = 0; p < a.size(); ++p) {
    EXPECT_EQ(whole.status_history(0, p).size(), drained.status_history(0, p).size());
  }
}

TEST(Status, BelowStageThreeParametersAreThere) {
  Store store = make_synthetic_store({.stage = 2});
  EXPECT_EQ(store.param_state(0, 0, 1000).status, 2);
  std::vector<ParamState> states(3);
  store.param_states(1, 0, states);
  EXPECT_EQ(states[2].status, 2);
}

TEST(Memory, EqualsAReplayAndAddsUpAtAnyTime) {
  const Store store = make_synthetic_store({.steps = 6});
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
    const auto rank = static_cast<std::uint32_t>(i % 4);
    CategoryBytes replay{};
    std::int64_t pool = 0;
    for (const ev::Event& event : store.instants(rank)) {
      if (static_cast<std::int64_t>(event.ticks) > at) break;
      if (event.kind != EventKind::memory_alloc && event.kind != EventKind::memory_free) continue;
      replay[event.code & 0xF] += event.kind == EventKind::memory_alloc ? event.v0 : -event.v0;
      pool = event.v1;
    }
    const MemorySample sample = store.memory_at(rank, MemoryPool::device, at);
    ASSERT_EQ(sample.bytes, replay);
    ASSERT_EQ(sample.total(), pool);
  }
}

TEST(Memory, PeakAndColumnsFindTheHighestInstant) {
  const Store store = make_synthetic_store({.steps = 6});
  std::int64_t peak = 0;
  for (const ev::Event& event : store.instants(2)) {
    if (event.kind == EventKind::memory_alloc) peak = std::max(peak, event.v1);
  }
  EXPECT_EQ(store.memory_peak(2, MemoryPool::device)->total(), peak);
  EXPECT_FALSE(store.memory_peak(2, MemoryPool::nvme).has_value());
  for (const std::size_t n : {1U, 13U, 400U, 5000U}) {
    std::vector<MemorySample> columns(n);
    store.memory_columns(2, MemoryPool::device, 0, store.end_ns() + 1, columns);
    const auto highest = std::max_element(columns.begin(), columns.end(),
                                          [](const auto& a, const auto& b) { return a.total() < b.total(); });
    EXPECT_EQ(highest->total(), peak) << n;
    // Each column is at least what was held when it began.
    for (std::size_t c = 1; c < n; ++c) {
      const auto from = static_cast<std::int64_t>(static_cast<double>(store.end_ns() + 1) /
                                                  static_cast<double>(n) * static_cast<double>(c));
      ASSERT_GE(columns[c].total(), store.memory_at(2, MemoryPool::device, from - 1).total())
          << n << " " << c;
    }
  }
}

TEST(Memory, ModelStatesDependOnTheStage) {
  const Store three = make_synthetic_store({.stage = 3});
  const MemorySample at3 = *three.model_state_peak(0, MemoryPool::device);
  EXPECT_EQ(at3.bytes[static_cast<std::size_t>(MemoryCategory::param_gathered)], 0);
  EXPECT_EQ(at3.bytes[static_cast<std::size_t>(MemoryCategory::activation)], 0);
  EXPECT_GT(at3.bytes[static_cast<std::size_t>(MemoryCategory::momentum)], 0);
  const Store one = make_synthetic_store({.stage = 1});
  EXPECT_GT(one.model_state_peak(0, MemoryPool::device)
                ->bytes[static_cast<std::size_t>(MemoryCategory::param_gathered)],
            0);
}

TEST(Memory, StillAddsUpAfterADrop) {
  Store store;
  store.ingest(ChunkBuilder()
                   .memory(10, MemoryCategory::param_shard, 100, 100)
                   .memory(20, MemoryCategory::activation, 50, 150)
                   .chunk);
  ChunkBuilder after(0, 1);  // dropped: activation freed (-50), momentum allocated (+70)
  after.chunk.dropped_before = 2;
  after.memory(50, MemoryCategory::temporary, 5, 175);
  store.ingest(after.chunk);
  EXPECT_EQ(store.memory_at(0, MemoryPool::device, 10).total(), 150);  // before the gap: untouched
  EXPECT_EQ(store.memory_at(0, MemoryPool::device, 40).total(), 175);
  EXPECT_EQ(store.memory_at(0, MemoryPool::device, 40).bytes[static_cast<std::size_t>(MemoryCategory::other)],
            20);
  ChunkBuilder later(0, 2);  // dropped: 60 bytes freed
  later.chunk.dropped_before = 1;
  later.memory(80, MemoryCategory::temporary, -5, 110);
  store.ingest(later.chunk);
  const MemorySample sample = store.memory_at(0, MemoryPool::device, 90);
  EXPECT_EQ(sample.total(), 110);
  EXPECT_EQ(sample.bytes[static_cast<std::size_t>(MemoryCategory::param_shard)], 100);
  for (const std::int64_t bytes : sample.bytes) EXPECT_GE(bytes, 0);
}

// What a rank's rings still held came after the drop was counted, and was emitted before it.
TEST(Memory, IsCorrectedAfterADropWhereTheCountsPartAndMakesNoPeak) {
  Store store;
  store.ingest(ChunkBuilder()
                   .memory(10, MemoryCategory::param_shard, 100, 100)
                   .memory(20, MemoryCategory::activation, 50, 150)
                   .chunk);
  ChunkBuilder after(0, 1);
  after.chunk.dropped_before = 1;
  after.memory(30, MemoryCategory::activation, 10, 160).memory(35, MemoryCategory::activation, -60, 100);
  // Dropped: 40 bytes allocated.
  after.memory(50, MemoryCategory::temporary, 5, 145).memory(60, MemoryCategory::temporary, -5, 140);
  store.ingest(after.chunk);
  EXPECT_EQ(store.memory_peak(0, MemoryPool::device)->total(), 160);
  for (const auto& [at, bytes] : {std::pair{20, 160}, {25, 100}, {39, 100}, {40, 145}, {50, 140}})
    EXPECT_EQ(store.memory_at(0, MemoryPool::device, at).total(), bytes) << at;
  // Dropped: 100 bytes freed. The first change after it does not stand on what was there before.
  ChunkBuilder later(0, 2);
  later.chunk.dropped_before = 1;
  later.memory(80, MemoryCategory::temporary, 30, 70);
  store.ingest(later.chunk);
  EXPECT_EQ(store.memory_at(0, MemoryPool::device, 70).total(), 70);
  EXPECT_EQ(store.memory_peak(0, MemoryPool::device)->total(), 160) << "170 never were";
}

TEST(Memory, WhatWasThereBeforeTheFirstEventIsOther) {
  Store store;
  store.ingest(ChunkBuilder().memory(10, MemoryCategory::activation, 40, 1040).chunk);
  const MemorySample sample = store.memory_at(0, MemoryPool::device, 10);
  EXPECT_EQ(sample.total(), 1040);
  EXPECT_EQ(sample.bytes[static_cast<std::size_t>(MemoryCategory::other)], 1000);
}

TEST(Steps, AreTheEarliestBeginAndLatestEndOfAllRanks) {
  Store store;
  ev::RunTables tables;
  tables.world = 2;
  store.set_tables(0, tables);
  store.ingest(ChunkBuilder(0)
                   .host(100, EventKind::step_begin, 3)
                   .number(120, EventKind::loss, 3, 2.0)
                   .host(150, EventKind::paused_begin, 1)
                   .host(180, EventKind::paused_end, 1)
                   .host(200, EventKind::step_end, 3, 1, 512)
                   .chunk);
  EXPECT_EQ(store.steps()[0].end_ns, kOpen);  // the other rank has not ended it
  store.ingest(ChunkBuilder(1)
                   .host(90, EventKind::step_begin, 3)
                   .number(130, EventKind::loss, 3, 4.0)
                   .number(140, EventKind::grad_norm, 3, 0.5)
                   .number(141, EventKind::clip_factor, 3, 0.25)
                   .host(210, EventKind::step_end, 3, 0, 512)
                   .chunk);
  ASSERT_EQ(store.steps().size(), 1U);
  const StepRow& step = store.steps()[0];
  EXPECT_EQ(store.origin_ns(), 90);  // rank 1's earlier event moved the origin
  EXPECT_EQ(step.begin_ns, 0);
  EXPECT_EQ(step.end_ns, 120);
  EXPECT_EQ(step.paused_ns, 30);
  EXPECT_EQ(step.tokens, 512);
  EXPECT_EQ(step.loss, 3.0);
  EXPECT_EQ(step.grad_norm, 0.5);
  EXPECT_EQ(step.clip_factor, 0.25);
  EXPECT_TRUE(std::isnan(step.learning_rate));
  EXPECT_TRUE(step.skipped);
  EXPECT_EQ(store.spans({0, ev::StreamId::host}, 0)[0].begin_ns, 10);
}

TEST(Steps, AreNotMadeNorMadeLongerByValuesThatComeBeforeThem) {
  Store store;
  store.set_tables(0, {});
  store.ingest(ChunkBuilder(0)
                   .host(100, EventKind::step_begin, 3)
                   .host(200, EventKind::step_end, 3)
                   .number(200, EventKind::learning_rate, 4, 0.25)
                   // An evaluation lies between.
                   .number(690, EventKind::loss_scale, 4, 8)
                   .host(700, EventKind::step_begin, 4)
                   .number(710, EventKind::learning_rate, 4, 0.5)
                   .host(720, EventKind::step_end, 4)
                   .number(730, EventKind::learning_rate, 5, 0.125)
                   // The begin of this one was lost: it begins with its first event.
                   .number(800, EventKind::loss, 6, 2)
                   .number(810, EventKind::loss, 6, 4)
                   .host(820, EventKind::step_end, 6)
                   .chunk);
  ASSERT_EQ(store.steps().size(), 3U) << "step 5 never was";
  EXPECT_EQ(store.steps()[1].begin_ns, 600);
  EXPECT_EQ(store.steps()[1].end_ns, 620);
  EXPECT_EQ(store.steps()[1].learning_rate, 0.5);
  EXPECT_EQ(store.steps()[1].loss_scale, 8);
  EXPECT_TRUE(std::isnan(store.steps()[1].clip_factor)) << "missing is not 1";
  EXPECT_EQ(store.steps()[2].step, 6U);
  EXPECT_EQ(store.steps()[2].begin_ns, 700);
  EXPECT_EQ(store.steps()[2].loss, 3);
}

TEST(Clocks, OffsetsBringRanksTogether) {
  const Store skewed = make_synthetic_store({.clock_skew_ns = 5'000'000'000});
  const Store straight = make_synthetic_store({.clock_skew_ns = 0});
  EXPECT_EQ(skewed.end_ns(), straight.end_ns());
  for (const LaneId lane : straight.lanes()) {
    ASSERT_EQ(skewed.spans(lane, 0).size(), straight.spans(lane, 0).size());
    EXPECT_EQ(skewed.spans(lane, 0).back().begin_ns, straight.spans(lane, 0).back().begin_ns);
  }
  EXPECT_EQ(skewed.ranks()[3].clock_offset_ns, -15'000'000'000);
}

TEST(Clocks, ARankThatArrivesLateKeepsItsEarlierTimes) {
  // Rank 0 is known by its tables when rank 1's later events set the origin.
  Store store;
  RankRow known;
  known.rank = 0;
  store.set_rank(known);
  ChunkBuilder later(1);
  later.compute(5'000, ev::EventKind::module_begin, 0).compute(6'000, ev::EventKind::module_end, 0);
  store.ingest(later.chunk);
  ChunkBuilder earlier(0);
  earlier.compute(1'000, ev::EventKind::module_begin, 0).compute(2'000, ev::EventKind::module_end, 0);
  store.ingest(earlier.chunk);
  const auto first = store.spans({0, ev::StreamId::compute}, 0);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].begin_ns, 0);
  EXPECT_EQ(first[0].end_ns, 1'000);
  EXPECT_EQ(store.spans({1, ev::StreamId::compute}, 0)[0].begin_ns, 4'000);
}

TEST(Ingest, IgnoresWhatItHasSeenAndSurvivesGarbage) {
  const SyntheticRun run = make_synthetic_run();
  Store store;
  fill_store(store, run);
  const std::uint64_t events = store.event_count();
  store.ingest(run.chunks[4]);
  EXPECT_EQ(store.event_count(), events);

  std::mt19937_64 random(21);
  for (int i = 0; i < 300; ++i) {
    Chunk chunk;
    chunk.rank = static_cast<std::uint32_t>(random() % 6);
    chunk.sequence = 1000 + static_cast<std::uint64_t>(i);
    chunk.clock_offset_ns = i % 7 == 0 ? static_cast<std::int64_t>(random()) : 0;
    for (int e = 0; e < 40; ++e) {
      ev::Event event;
      event.ticks = i % 5 == 0 ? random() : random() % 1'000'000;
      event.kind = static_cast<EventKind>(random() % 60);
      event.stream = static_cast<ev::StreamId>(random() % 8);
      event.code = static_cast<std::uint8_t>(random());
      event.a = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 50);
      event.v0 = static_cast<std::int64_t>(random() % 1'000'000'000);
      event.v1 = static_cast<std::int64_t>(random() % 1'000'000'000);
      chunk.events.push_back(event);
    }
    store.ingest(chunk);
  }
  std::vector<Density> columns(100);
  std::vector<MemorySample> memory(100);
  std::vector<ParamState> states(100);
  for (const LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d)
      store.density(lane, d, 0, store.end_ns(), columns);
  }
  for (const RankRow& rank : store.ranks()) {
    store.memory_columns(rank.rank, MemoryPool::device, 0, store.end_ns(), memory);
    store.param_states(rank.rank, store.end_ns() / 2, states);
  }
  EXPECT_GT(store.event_count(), events);
}

TEST(Tables, AreThoseOfTheLowestRankAndKeptOnce) {
  const SyntheticRun run = make_synthetic_run({.steps = 1});
  Store store;
  store.set_tables(2, run.tables[2]);
  EXPECT_EQ(store.tables().rank, 2U);
  store.set_tables(1, run.tables[1]);
  store.set_tables(3, run.tables[3]);
  EXPECT_EQ(store.tables().rank, 1U);
  EXPECT_EQ(store.tables().params.size(), run.tables[1].params.size());
  EXPECT_EQ(store.rank_tables(3)->pid, 1003);
  EXPECT_TRUE(store.rank_tables(3)->params.empty());
  EXPECT_EQ(store.rank_tables(0), nullptr);
  ev::RunTables without;  // as a recording holds it for most ranks
  store.set_tables(0, without);
  EXPECT_EQ(store.tables().params.size(), run.tables[1].params.size());
}

/// As rows of text, which a failure shows.
std::vector<std::string> totals_of(const Store& store) {
  std::vector<std::string> out;
  for (const SpanTotal& t : store.span_totals()) {
    out.push_back(std::to_string(t.lane.rank) + "/" + std::to_string(static_cast<int>(t.lane.stream)) + " " +
                  ev::name_of(t.kind) + "." + std::to_string(t.code) + " n " + std::to_string(t.count) +
                  " sum " + std::to_string(t.total_ns) + " least " + std::to_string(t.min_ns) + " most " +
                  std::to_string(t.max_ns));
  }
  return out;
}

TEST(Totals, AreThoseOfAStoreThatKeepsEverything) {
  SyntheticRun run = make_synthetic_run({.steps = 6, .chunk_events = 100});
  for (Chunk& chunk : run.chunks) {
    if (chunk.rank == 2 && chunk.sequence == 20) {  // a gap, which memory is corrected at
      chunk.events.erase(chunk.events.begin(), chunk.events.begin() + 60);
      chunk.dropped_before = 60;
    }
  }
  // Rank 0 arrives last, and is first in time: the origin moves while there are totals already.
  std::stable_partition(run.chunks.begin(), run.chunks.end(), [](const Chunk& c) { return c.rank != 0; });
  Store whole;
  Store totals(Keep::totals);
  fill_store(whole, run);
  fill_store(totals, run);
  EXPECT_EQ(totals_of(totals), totals_of(whole));
  EXPECT_GT(totals_of(whole).size(), 20U);
  EXPECT_EQ(totals.event_count(), whole.event_count());
  EXPECT_EQ(totals.end_ns(), whole.end_ns());
  EXPECT_EQ(totals.gaps().size(), whole.gaps().size());
  ASSERT_EQ(totals.steps().size(), whole.steps().size());
  for (std::size_t i = 0; i < whole.steps().size(); ++i) {
    EXPECT_EQ(totals.steps()[i].begin_ns, whole.steps()[i].begin_ns);
    EXPECT_EQ(totals.steps()[i].end_ns, whole.steps()[i].end_ns);
    EXPECT_EQ(totals.steps()[i].loss, whole.steps()[i].loss);
  }
  for (const RankRow& row : whole.ranks()) {
    for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
      const auto pool = static_cast<ev::MemoryPool>(p);
      const auto a = totals.memory_peak(row.rank, pool), b = whole.memory_peak(row.rank, pool);
      ASSERT_EQ(a.has_value(), b.has_value());
      if (a) {
        EXPECT_EQ(a->at_ns, b->at_ns);
        EXPECT_EQ(a->bytes, b->bytes);
      }
      const auto c = totals.model_state_peak(row.rank, pool), d = whole.model_state_peak(row.rank, pool);
      ASSERT_EQ(c.has_value(), d.has_value());
      if (c) {
        EXPECT_EQ(c->bytes, d->bytes);
      }
    }
    EXPECT_TRUE(totals.instants(row.rank).empty());
    std::size_t kept = 0;
    for (const LaneId lane : totals.lanes()) {
      for (std::uint8_t d = 0; d < totals.depth_count(lane); ++d) kept += totals.spans(lane, d).size();
    }
    EXPECT_EQ(kept, 0U);  // every span of this run has ended
  }
}

TEST(Gates, AreListedPerRankInOrder) {
  const Store store = make_synthetic_store();
  const auto gates = store.gates(2);
  ASSERT_GT(gates.size(), 100U);
  for (std::size_t i = 1; i < gates.size(); ++i) {
    EXPECT_EQ(gates[i].number, gates[i - 1].number + 1);
    EXPECT_GE(gates[i].at_ns, gates[i - 1].at_ns);
  }
  EXPECT_EQ(store.gates(0).size(), gates.size());
}

TEST(Revision, ChangesWithEveryInput) {
  Store store;
  std::uint64_t last = store.revision();
  const auto changed = [&] { return std::exchange(last, store.revision()) != last; };
  store.ingest(ChunkBuilder().host(1, EventKind::step_begin, 0).chunk);
  EXPECT_TRUE(changed());
  store.add_name(0, 1, "gemm");
  EXPECT_TRUE(changed());
  EXPECT_EQ(store.name(0, 1), "gemm");
  EXPECT_EQ(store.name(1, 1), "");
  RankRow row;
  row.connected = true;
  store.set_rank(row);
  EXPECT_TRUE(changed());
  EXPECT_TRUE(store.ranks()[0].connected);
  store.add_message({.at_ns = 4, .rank = 0, .severity = ev::Severity::error, .text = "x"});
  EXPECT_TRUE(changed());
  EXPECT_FALSE(changed());
}

}  // namespace
}  // namespace shardscope::store
