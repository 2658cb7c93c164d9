// When chunks are sealed, joined and handed to the recording.
#include "app/collector/held_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "app/collector/collector_pace.h"
#include "app/collector/run_record.h"
#include "app/store/compaction.h"

namespace shardscope::collector {
namespace {

TEST(CollectorPace, HurriesOnlyWhileAViewerWouldNotice) {
  const CollectorPace alone = pace_of(Watch::idle, 2), watched = pace_of(Watch::active, 2);
  EXPECT_LE(watched.chunk_age_s + watched.iteration_s, 0.1)
      << "a live view is to follow within a tenth of a second";
  EXPECT_GE(alone.iteration_s, 4 * watched.iteration_s);
  EXPECT_GE(alone.chunk_age_s, 4 * watched.chunk_age_s);
  EXPECT_EQ(watched.look_ms, 0) << "ranks look as often as a live view needs";
  EXPECT_GE(alone.look_ms, 200);
  EXPECT_LE(alone.chunk_age_s, 0.5) << "what a crash of the collector may lose";
  EXPECT_EQ(watched.pack_ms, 0) << "nodes pass on as often as a live view needs";
  EXPECT_GT(pace_of(Watch::active, 64).chunk_age_s, watched.chunk_age_s) << "many ranks: larger chunks";
  EXPECT_LE(pace_of(Watch::active, 100'000).chunk_age_s, 0.5);
}

TEST(CollectorPace, WhereItOnlyRecordsThereAreNoMoreChunksAndBatchesWithMoreRanks) {
  for (const std::size_t ranks : {1U, 128U, 256U, 1000U, 2048U, 4096U}) {
    const CollectorPace pace = pace_of(Watch::idle, ranks);
    EXPECT_LE(static_cast<double>(ranks) / pace.chunk_age_s, kChunksPerSecond) << ranks;
    EXPECT_LE(1000.0 * static_cast<double>(ranks) / pace.pack_ms, 2 * kChunksPerSecond) << ranks;
    EXPECT_LT(pace.look_ms, pace.pack_ms) << "ranks publish as often as before: their rings are bounded";
  }
  EXPECT_EQ(pace_of(Watch::idle, 128).chunk_age_s, 0.5) << "few ranks: no older than they were";
  EXPECT_EQ(pace_of(Watch::idle, 1024).chunk_age_s, 4);
  EXPECT_EQ(pace_of(Watch::idle, 1024).pack_ms, 4000);
  EXPECT_EQ(pace_of(Watch::idle, 100'000).chunk_age_s, kLongestIdleAge_s) << "what a crash loses is bounded";
  EXPECT_EQ(pace_of(Watch::idle, 100'000).pack_ms, 1000 * kLongestPack_s);
}

TEST(RunRecord, WhatIsPendingIsHandedOverBeforeItWouldHaveToBeShed) {
  constexpr std::size_t kIntake = 64 * sizeof(instrumentation::Event);
  StatusBoard board;
  CollectorOptions options;
  options.intake_bytes = kIntake;
  RunRecord record(options, board);
  record.begin({});
  RankSession rank(0);
  for (std::size_t events = 0; !record.crowded(); events += 8) {
    ASSERT_LT(events, 64U);
    EXPECT_FALSE(record.full());
    wire::Batch batch;
    batch.events.resize(8);
    record.add(rank, batch, 1);
  }
  EXPECT_FALSE(record.full()) << "half of the intake is left";
  record.flush_all(rank);
  EXPECT_FALSE(record.crowded());
}

/// Chunks of ranks by their next numbers, and what HeldChunks made of them.
struct Holding {
  struct Row {
    std::uint32_t rank = 0;
    std::uint64_t sequence = 0;
    std::uint32_t parts = 0;
    std::size_t events = 0;
    bool encoded = false;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows;
  std::map<std::uint32_t, std::uint64_t> next;
  HeldChunks held{[this](const store::Chunk& chunk, std::span<const std::byte> encoded) {
    rows.push_back({chunk.rank, chunk.sequence, chunk.parts, chunk.events.size(), !encoded.empty()});
    if (encoded.empty()) return;
    EXPECT_TRUE(std::ranges::equal(encoded, chunk.encode()));
  }};
  void add(std::uint32_t rank, std::size_t events, std::int64_t now_ns, std::uint64_t dropped = 0) {
    store::Chunk chunk;
    chunk.rank = rank;
    chunk.sequence = next[rank]++;
    chunk.dropped_before = dropped;
    chunk.events.resize(events, instrumentation::Event{.kind = instrumentation::EventKind::loss});
    held.add(chunk, chunk.encode(), now_ns);
  }
  std::vector<Row> take() { return std::exchange(rows, {}); }
};

using Rows = std::vector<Holding::Row>;

TEST(HeldChunks, JoinsWhatMakesABlockAndLeavesWhatIsOne) {
  constexpr std::size_t kBlock = store::Compaction::kJoinedEvents;
  Holding h;
  h.add(0, kBlock, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 0, 1, kBlock, true}})) << "at once, as it is";
  h.add(0, kBlock / 2, 0);
  h.add(1, 10, 0);
  h.add(0, kBlock / 2 - 1, 0);
  EXPECT_EQ(h.take(), Rows{}) << "a block of half as many events would take more room";
  EXPECT_EQ(h.held.events(), kBlock - 1 + 10);
  h.add(0, 1, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 1, 3, kBlock, false}})) << "the other rank's waits on";
  h.add(0, 20, 0);
  h.add(0, kBlock, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 4, 1, 20, true}, {0, 5, 1, kBlock, true}})) << "in order";
}

TEST(HeldChunks, AGapBeginsARow) {
  Holding h;
  h.add(0, 100, 0);
  h.add(0, 100, 0, 7);
  h.add(0, 100, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 0, 1, 100, true}}));
  h.held.record_all();
  EXPECT_EQ(h.take(), (Rows{{0, 1, 2, 200, false}}));
}

TEST(HeldChunks, HoldsNothingForLongAndNeverMuch) {
  Holding h;
  h.add(0, 100, 0);
  h.add(1, 100, 1);
  h.add(0, 100, 1);
  h.held.record_due(HeldChunks::kLongest_ns);
  EXPECT_EQ(h.take(), (Rows{{0, 0, 2, 200, false}})) << "as old as its oldest event";
  h.held.record_due(HeldChunks::kLongest_ns + 1);
  EXPECT_EQ(h.take(), (Rows{{1, 0, 1, 100, true}}));
  h.held.record_due(10 * HeldChunks::kLongest_ns);
  EXPECT_EQ(h.take(), Rows{});
  std::size_t most = 0;
  for (std::uint32_t rank = 0; rank < 200; ++rank) {
    h.add(rank, 1000, 0);
    most = std::max(most, h.held.events());
  }
  EXPECT_LE(most, HeldChunks::kMostEvents);
  EXPECT_GT(most, HeldChunks::kMostEvents / 2);
  EXPECT_GT(h.take().size(), 100U);
}

}  // namespace
}  // namespace shardscope::collector
