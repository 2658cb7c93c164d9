// A live run without an end: what a store takes does not grow, what it keeps is answered exactly, and what it
// evicted is said to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "app/store/gap_text.h"
#include "app/store/spill_file.h"
#include "tests/app/store/endless_run.h"
#include "tests/app/store/same_store.h"

namespace shardscope::store {
namespace {

constexpr Store::Bounds kTight{
    .packed_bytes = 256 << 10, .file_bytes = 2 << 20, .index_bytes = 2 << 20, .steps = 128};

Store bounded(const Store::Bounds& bounds, const SyntheticRun& run) {
  Store store;
  store.bound(bounds);
  store.seal_after(1024);
  for (const ev::RunTables& tables : run.tables) store.set_tables(tables.rank, tables);
  return store;
}

std::size_t held(const Store& store) { return store.resident_bytes() - store.cache_bytes(); }

TEST(Bounds, WhatAStoreTakesDoesNotGrowWithTheRun) {
  for (const Store::Bounds& bounds :
       {Store::Bounds{
            .packed_bytes = 128 << 10, .file_bytes = 512 << 10, .index_bytes = 1 << 20, .steps = 64},
        Store::Bounds{.packed_bytes = 128 << 10, .index_bytes = 1 << 20, .steps = 64},
        Store::Bounds{.packed_bytes = 128 << 10, .file_bytes = 512 << 10, .steps = 64}}) {
    EndlessRun run(2);
    Store store = bounded(bounds, run.run());
    const auto feed = [&](int turns) {
      std::size_t most = 0;
      for (int i = 0; i < turns; ++i) {
        run.again([&](const Chunk& chunk) { store.ingest(chunk); });
        most = std::max(most, held(store));
      }
      return most;
    };
    const std::size_t early = feed(5);  // each bound has evicted something by then
    const std::uint64_t events = store.event_count();
    EXPECT_GT(store.evicted().events, 0U);
    EXPECT_GT(store.evicted().steps, 0U);
    const std::size_t late = feed(45);
    EXPECT_EQ(store.event_count(), 10 * events);
    EXPECT_LE(late, early + early / 8) << "ten times the events";
    EXPECT_LE(store.steps().size(), 64U);
    EXPECT_EQ(store.steps().size() + store.evicted().steps, 50U * EndlessRun::kSteps);
    EXPECT_EQ(store.steps().back().step, 50U * EndlessRun::kSteps - 1);
  }
}

TEST(Bounds, WithoutThemItGrows) {
  EndlessRun run(1);
  Store store;
  store.seal_after(1024);
  run.again([&](const Chunk& chunk) { store.ingest(chunk); });
  for (int i = 0; i < 9; ++i) run.again([&](const Chunk& chunk) { store.ingest(chunk); });
  const std::size_t early = held(store);
  for (int i = 0; i < 30; ++i) run.again([&](const Chunk& chunk) { store.ingest(chunk); });
  EXPECT_GT(held(store), 2 * early);
  EXPECT_EQ(store.evicted().events, 0U);
}

/// Spilled and not evicted: nothing is different but where it lies.
TEST(Bounds, WhatIsSpilledIsAnsweredAsBefore) {
  EndlessRun run(2);
  Store spilling = bounded({.packed_bytes = 64 << 10}, run.run());
  Store whole = bounded({}, run.run());
  for (int i = 0; i < 24; ++i) {
    run.again([&](const Chunk& chunk) {
      spilling.ingest(chunk);
      whole.ingest(chunk);
    });
  }
  EXPECT_LT(held(spilling), held(whole));
  EXPECT_EQ(spilling.evicted().events, 0U);
  expect_same_tables(whole, spilling);
  expect_same_lanes(whole, spilling, 1, 1);
  expect_same_states(whole, spilling, 2, 8);
  expect_same_density(whole, spilling, 3, 6);
  EXPECT_TRUE(spilling.problems().empty());
}

class Evicted : public testing::Test {
 protected:
  Evicted() {
    for (Store* store : {&bounded_, &whole_}) store->seal_after(1024);
    for (int i = 0; i < 24; ++i) {
      run_.again([&](Chunk& chunk) {
        // Somebody lowers the detail early.
        if (i == 1 && !lowered_) {
          ev::Event event = chunk.events.front();
          event.kind = ev::EventKind::detail_changed;
          event.stream = ev::StreamId::host;
          event.code = static_cast<std::uint8_t>(ev::Detail::modules);
          event.a = static_cast<std::uint32_t>(ev::Detail::params);
          chunk.events.insert(chunk.events.begin(), event);
          lowered_ = true;
          lowered_rank_ = chunk.rank;
        }
        bounded_.ingest(chunk);
        whole_.ingest(chunk);
      });
    }
  }
  EndlessRun run_{2};
  Store bounded_ = bounded(kTight, run_.run()), whole_ = bounded({}, run_.run());
  bool lowered_ = false;
  std::uint32_t lowered_rank_ = 0;
};

TEST_F(Evicted, SumsTotalsAndPeaksAreThoseOfTheWholeRun) {
  ASSERT_GT(bounded_.evicted().events, 0U);
  ASSERT_LT(bounded_.evicted().events, bounded_.event_count());
  EXPECT_EQ(bounded_.event_count(), whole_.event_count());
  EXPECT_EQ(bounded_.end_ns(), whole_.end_ns());
  EXPECT_EQ(bounded_.dropped_count(), 0U);
  const auto x = whole_.span_totals(), y = bounded_.span_totals();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].count, y[i].count);
    EXPECT_EQ(x[i].total_ns, y[i].total_ns);
  }
  for (const RankRow& row : whole_.ranks()) {
    const auto a = whole_.memory_peak(row.rank, ev::MemoryPool::device);
    const auto b = bounded_.memory_peak(row.rank, ev::MemoryPool::device);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->bytes, b->bytes);
    EXPECT_EQ(whole_.instant_count(row.rank, ev::EventKind::param_status),
              bounded_.instant_count(row.rank, ev::EventKind::param_status));
  }
}

TEST_F(Evicted, EachRankHasOneGapThere) {
  ASSERT_EQ(bounded_.gaps().size(), 2U);
  std::uint64_t events = 0;
  std::int64_t until = 0;
  for (const Gap& gap : bounded_.gaps()) {
    EXPECT_TRUE(gap.evicted);
    EXPECT_LT(gap.begin_ns, bounded_.end_ns() / 100) << "from the rank's first event on";
    events += gap.events;
    until = std::max(until, gap.end_ns);
    EXPECT_NE(what_is_missing(gap).find("evicted"), std::string::npos);
  }
  EXPECT_EQ(events, bounded_.evicted().events);
  EXPECT_EQ(until, bounded_.evicted().until_ns);
}

TEST_F(Evicted, WhatIsKeptIsAnsweredExactly) {
  const std::int64_t from = bounded_.evicted().until_ns;
  const std::int64_t length = bounded_.end_ns() - from;
  ASSERT_GT(length, 0);
  std::mt19937_64 random(4);
  for (const LaneId lane : whole_.lanes()) {
    for (std::uint8_t d = 0; d < whole_.depth_count(lane); ++d) {
      expect_same_spans(whole_.spans(lane, d, from + 1, Store::kEnd),
                        bounded_.spans(lane, d, from + 1, Store::kEnd), "kept");
    }
  }
  std::vector<ParamState> x(whole_.tables().params.size()), y(x.size());
  for (const RankRow& row : whole_.ranks()) {
    expect_same_events(whole_.instants(row.rank, from + 1), bounded_.instants(row.rank, from + 1));
    for (int i = 0; i < 20; ++i) {
      const std::int64_t at =
          from + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(length));
      whole_.param_states(row.rank, at, x);
      bounded_.param_states(row.rank, at, y);
      for (std::size_t p = 0; p < x.size(); ++p) {
        ASSERT_EQ(x[p].status, y[p].status) << at;
        ASSERT_EQ(x[p].since_ns, y[p].since_ns) << at;
      }
      ASSERT_EQ(whole_.memory_at(row.rank, ev::MemoryPool::device, at).bytes,
                bounded_.memory_at(row.rank, ev::MemoryPool::device, at).bytes)
          << at;
    }
    EXPECT_EQ(whole_.instants_of(row.rank, ev::EventKind::detail_changed).size(),
              bounded_.instants_of(row.rank, ev::EventKind::detail_changed).size())
        << "later steps depend on it";
  }
}

double busy(const Store& store, LaneId lane, std::uint8_t depth, std::int64_t begin, std::int64_t end) {
  std::vector<Density> columns(120);
  store.density(lane, depth, begin, end, columns);
  return std::accumulate(columns.begin(), columns.end(), 0.0,
                         [](double sum, const Density& column) { return sum + column.busy; });
}

TEST_F(Evicted, LevelsOfDetailReachOverTheWholeRun) {
  const std::int64_t end = whole_.end_ns(), gone = bounded_.evicted().until_ns;
  for (const LaneId lane : whole_.lanes()) {
    for (std::uint8_t d = 0; d < whole_.depth_count(lane); ++d) {
      EXPECT_NEAR(busy(whole_, lane, d, 0, end), busy(bounded_, lane, d, 0, end), 2) << int{d};
      // Within what was evicted: by the levels of all of the row.
      EXPECT_NEAR(busy(whole_, lane, d, 0, gone / 2), busy(bounded_, lane, d, 0, gone / 2), 4) << int{d};
      // In what is kept: as finely as before.
      EXPECT_NEAR(busy(whole_, lane, d, gone + 1, end), busy(bounded_, lane, d, gone + 1, end), 2) << int{d};
    }
  }
  std::vector<MemorySample> columns(50), all(50);
  bounded_.memory_columns(0, ev::MemoryPool::device, 0, end, columns);
  whole_.memory_columns(0, ev::MemoryPool::device, 0, end, all);
  const auto highest = [](const std::vector<MemorySample>& samples) {
    std::int64_t most = 0;
    for (const MemorySample& sample : samples) most = std::max(most, sample.total());
    return most;
  };
  EXPECT_EQ(highest(columns), highest(all));
  for (const MemorySample& sample : columns) EXPECT_GT(sample.total(), 0) << sample.at_ns;
}

TEST(SpillFile, GivesBackWhatWasPutAndForgetsWhatWasDropped) {
  SpillFile file(testing::TempDir());
  std::vector<SpillFile::Place> places;
  const auto blob = [](std::size_t i) {
    return std::vector<std::byte>(1000 + i * 7919 % 300'000, static_cast<std::byte>(i));
  };
  for (std::size_t i = 0; i < 300; ++i) places.push_back(file.put(blob(i)).value());
  for (std::size_t i = 0; i < 250; ++i) file.drop(places[i]);
  std::uint64_t left = 0;
  for (std::size_t i = 250; i < 300; ++i) {
    EXPECT_EQ(file.get(places[i]), blob(i));
    left += places[i].bytes;
  }
  EXPECT_EQ(file.bytes(), left);
  SpillFile nowhere("/no/such/folder");
  EXPECT_FALSE(nowhere.put(blob(1)).has_value());
}

/// With nowhere to spill to, less is kept, and memory is bounded all the same.
TEST(Bounds, HoldWithoutADisk) {
  ASSERT_EQ(setenv("TMPDIR", "/no/such/folder", 1), 0);
  EndlessRun run(1);
  // What would be spilled is evicted; nothing else asks for it.
  Store store = bounded({.packed_bytes = 128 << 10, .steps = 64}, run.run());
  ASSERT_EQ(unsetenv("TMPDIR"), 0);
  for (int i = 0; i < 20; ++i) run.again([&](const Chunk& chunk) { store.ingest(chunk); });
  const std::size_t early = held(store);
  for (int i = 0; i < 60; ++i) run.again([&](const Chunk& chunk) { store.ingest(chunk); });
  EXPECT_LE(held(store), early + early / 8);
  EXPECT_GT(store.evicted().events, 0U);
  EXPECT_TRUE(store.problems().empty());
}

}  // namespace
}  // namespace shardscope::store
