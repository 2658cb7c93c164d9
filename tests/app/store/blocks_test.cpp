// Blocks: a store that seals its events and reads them when they are looked at answers like one that keeps
// them all. What is read stays within the cache's bound.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/store/block.h"
#include "app/store/block_cache.h"
#include "app/store/bytes.h"
#include "app/store/packed.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/same_store.h"
#include "tests/app/store/store_pair.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {
namespace {

TEST(Blocks, AnswerLikeAStoreThatKeepsEverything) {
  for (const std::size_t size : {300U, 1500U, 5000U}) {
    StorePair stores(size);
    stores.fill(make_synthetic_run({.world = 3, .steps = 12, .micro_steps = 2, .chunk_events = 170}));
    SCOPED_TRACE(size);
    expect_same_tables(stores.whole, stores.sealed);
    expect_same_lanes(stores.whole, stores.sealed, size, 12);
    expect_same_states(stores.whole, stores.sealed, size, 40);
  }
}

TEST(Blocks, KeepTheirDensity) {
  for (const std::size_t size : {400U, 3000U}) {
    StorePair stores(size);
    stores.fill(make_synthetic_run({.world = 2, .steps = 40, .chunk_events = 200}));
    expect_same_density(stores.whole, stores.sealed, size, 30);
  }
}

/// Some chunks are missing, so that spans stay open and memory does not add up.
SyntheticRun with_gaps(std::uint64_t seed) {
  SyntheticRun run = make_synthetic_run({.world = 2, .steps = 14, .chunk_events = 130});
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> sequence(2, 0), dropped(2, 0);
  std::vector<Chunk> kept;
  for (Chunk& chunk : run.chunks) {
    if (random() % 9 == 0) {
      dropped[chunk.rank] += chunk.events.size();
      continue;
    }
    chunk.sequence = sequence[chunk.rank]++;
    chunk.dropped_before = std::exchange(dropped[chunk.rank], 0);
    kept.push_back(std::move(chunk));
  }
  run.chunks = std::move(kept);
  return run;
}

TEST(Blocks, AnswerTheSameWhereEventsAreMissing) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    StorePair stores(600);
    stores.fill(with_gaps(seed));
    SCOPED_TRACE(seed);
    EXPECT_GT(stores.whole.gaps().size(), 10U);
    expect_same_tables(stores.whole, stores.sealed);
    expect_same_lanes(stores.whole, stores.sealed, seed, 8);
    expect_same_states(stores.whole, stores.sealed, seed, 40);
  }
}

// Threads stamp events in another order than they counted in. Beside a gap a block that is read again must
// not take that for something missing: it shows what was shown while its events came.
TEST(Blocks, MemoryIsCorrectedNoFurtherWhereABlockIsReadAgain) {
  constexpr auto kPool = ev::MemoryPool::device;
  StorePair stores(4);
  stores.ingest(ChunkBuilder().memory(10, ev::MemoryCategory::param_shard, 100, 100).chunk);
  ChunkBuilder after(0, 1);
  after.chunk.dropped_before = 1;  // 40 bytes allocated
  after.memory(30, ev::MemoryCategory::activation, 10, 150);
  stores.ingest(after.chunk);
  // Its count holds 10 bytes of another thread, whose event comes with the next chunk.
  stores.ingest(ChunkBuilder(0, 2)
                    .memory(50, ev::MemoryCategory::temporary, 5, 165)
                    .host(60, ev::EventKind::tokens, 0)
                    .chunk);
  stores.ingest(ChunkBuilder(0, 3).memory(70, ev::MemoryCategory::temporary, 10, 160).chunk);
  // The first event is time 0.
  for (const auto& [at, bytes] : {std::pair{10, 100}, {20, 150}, {40, 155}, {55, 155}, {60, 165}}) {
    EXPECT_EQ(stores.whole.memory_at(0, kPool, at).total(), bytes) << at;
    EXPECT_EQ(stores.sealed.memory_at(0, kPool, at).bytes, stores.whole.memory_at(0, kPool, at).bytes) << at;
  }
}

TEST(Blocks, MayOverlapInTime) {
  StorePair stores(900);
  stores.fill(drained_by_thread(make_synthetic_run({.world = 1, .steps = 20, .chunk_events = 300})));
  expect_same_tables(stores.whole, stores.sealed);
  expect_same_lanes(stores.whole, stores.sealed, 5, 8);
  expect_same_states(stores.whole, stores.sealed, 5, 60);
}

TEST(Blocks, ARankThatArrivesLateMovesNothing) {
  SyntheticRun run = make_synthetic_run({.world = 2, .steps = 8, .chunk_events = 150});
  std::stable_partition(run.chunks.begin(), run.chunks.end(), [](const Chunk& c) { return c.rank != 0; });
  StorePair stores(500);
  stores.fill(run);
  expect_same_tables(stores.whole, stores.sealed);
  expect_same_lanes(stores.whole, stores.sealed, 9, 4);
  expect_same_states(stores.whole, stores.sealed, 9, 20);
}

TEST(Blocks, ASpanOverManyBlocksHasItsEndInEach) {
  Store store;
  store.seal_after(10);
  constexpr LaneId kHost{0, ev::StreamId::host};
  std::uint64_t sequence = 0;
  const auto chunk = [&](auto fill) {
    ChunkBuilder builder(0, sequence++);
    fill(builder);
    store.ingest(builder.chunk);
  };
  chunk([](ChunkBuilder& c) { c.host(0, ev::EventKind::step_begin, 0); });
  for (int i = 0; i < 40; ++i) {
    chunk([&](ChunkBuilder& c) {
      const std::int64_t at = 100 + i * 100;
      c.host(at, ev::EventKind::micro_step_begin, static_cast<std::uint32_t>(i));
      for (int k = 1; k < 12; ++k) c.host(at + k, ev::EventKind::tokens, 0);
      c.host(at + 50, ev::EventKind::micro_step_end, static_cast<std::uint32_t>(i));
    });
  }
  // Open: to the end of the run, wherever it is looked at.
  for (const std::int64_t at : {150, 1234, 3999}) {
    const auto spans = store.spans(kHost, 0, at, at + 1);
    ASSERT_EQ(spans.size(), 1U) << at;
    EXPECT_EQ(spans[0].begin_ns, 0);
    EXPECT_EQ(spans[0].end_ns, kOpen);
  }
  chunk([](ChunkBuilder& c) { c.host(9'000, ev::EventKind::step_end, 0); });
  for (const std::int64_t at : {150, 1234, 3999, 8'000}) {
    const auto spans = store.spans(kHost, 0, at, at + 1);
    ASSERT_EQ(spans.size(), 1U) << at;
    EXPECT_EQ(spans[0].end_ns, 9'000);
  }
  std::vector<Density> columns(90);
  store.density(kHost, 0, 0, 9'000, columns);
  for (const Density& column : columns) EXPECT_NEAR(column.busy, 1.0F, 0.02F);
  EXPECT_EQ(store.span_count(kHost, 0, 0, 9'001), 1U);
  EXPECT_EQ(store.span_count(kHost, 1, 0, 9'001), 40U);
}

TEST(Blocks, BucketsSayWhatTheyHoldAtATime) {
  Store store;
  store.seal_after(4);
  ChunkBuilder one(0, 0);
  one.host(10, ev::EventKind::bucket_open, 3);
  one.host(20, ev::EventKind::bucket_add, 3, 0, 100, 100);
  one.chunk.events.back().b = 7;
  one.host(30, ev::EventKind::tokens, 0).host(31, ev::EventKind::tokens, 0);
  store.ingest(one.chunk);
  ChunkBuilder two(0, 1);
  two.host(40, ev::EventKind::bucket_add, 3, 0, 50, 150);
  two.chunk.events.back().b = 8;
  two.host(60, ev::EventKind::bucket_flush, 3).host(70, ev::EventKind::bucket_open, 4);
  store.ingest(two.chunk);
  // The first event is time 0.
  ASSERT_EQ(store.buckets_at(0, 12).size(), 1U);
  EXPECT_EQ(store.buckets_at(0, 12)[0].elems, 100);
  EXPECT_EQ(store.buckets_at(0, 35)[0].params, (std::vector<std::uint32_t>{7, 8}));
  EXPECT_EQ(store.buckets_at(0, 35)[0].since_ns, 0);
  EXPECT_TRUE(store.buckets_at(0, 55).empty());
  ASSERT_EQ(store.buckets_at(0, 65).size(), 1U);
  EXPECT_EQ(store.buckets_at(0, 65)[0].bucket, 4U);
}

TEST(Blocks, WhatIsReadStaysWithinTheBound) {
  StorePair stores(1000);
  stores.fill(make_synthetic_run({.world = 2, .steps = 60, .chunk_events = 250}));
  constexpr std::size_t kBound = 1U << 18;
  stores.sealed.set_cache_bytes(kBound);
  std::size_t most = 0;
  stores.sealed.for_each_instant(0, Store::kBegin, Store::kEnd, [&](const ev::Event&) {
    most = std::max(most, stores.sealed.cache_bytes());
  });
  EXPECT_GT(most, kBound / 2);
  EXPECT_LE(most, kBound);
  expect_same_lanes(stores.whole, stores.sealed, 1, 2);
  EXPECT_LE(stores.sealed.cache_bytes(), kBound);
  // States at ever other times take their share, and leave what spans are read from alone.
  std::size_t before = stores.sealed.cache_bytes(), least = SIZE_MAX;
  std::vector<ParamState> states(4);
  for (int i = 0; i < 200; ++i) {
    stores.sealed.param_states(0, stores.sealed.end_ns() * i / 200, states);
    EXPECT_LE(stores.sealed.cache_bytes(), kBound);
    least = std::min(least, stores.sealed.cache_bytes());
  }
  EXPECT_GE(least, before);
  EXPECT_GT(stores.sealed.cache_bytes(), before);
  EXPECT_LT(stores.sealed.cache_bytes(), before + kBound / 4);
  // Beside the cache a fraction of what keeping everything takes.
  EXPECT_LT(stores.sealed.resident_bytes() - stores.sealed.cache_bytes(), stores.whole.resident_bytes() / 2);
}

TEST(Blocks, AFrameReadsLittleAndTheNextOnesRefineIt) {
  StorePair stores(1000);
  stores.fill(make_synthetic_run({.world = 1, .steps = 120, .chunk_events = 250}));
  const LaneId lane{0, ev::StreamId::compute};
  const auto depth = static_cast<std::uint8_t>(stores.whole.depth_count(lane) - 1);
  const std::int64_t begin = stores.whole.end_ns() / 4, end = stores.whole.end_ns() / 2;
  std::vector<Density> exact(4000), seen(4000);
  stores.whole.density(lane, depth, begin, end, exact);
  const auto difference = [&] {
    double sum = 0;
    for (std::size_t c = 0; c < seen.size(); ++c) sum += std::abs(exact[c].busy - seen[c].busy);
    return sum / static_cast<double>(seen.size());
  };
  int frames = 0;
  double first = 0, total = 0;
  do {
    stores.sealed.limit_reading(std::chrono::nanoseconds(0));  // one block a frame
    stores.sealed.density(lane, depth, begin, end, seen);
    total = 0;
    for (const Density& column : seen) total += column.busy;
    if (frames == 0) first = difference();
    ++frames;
    ASSERT_LT(frames, 1000);
  } while (stores.sealed.wants_more());
  EXPECT_GT(frames, 2);
  EXPECT_LT(difference(), 0.02);
  EXPECT_GT(first, difference());
  double busy = 0;
  for (const Density& column : exact) busy += column.busy;
  EXPECT_NEAR(total, busy, 0.02 * busy);
  stores.sealed.limit_reading(std::nullopt);
}

/// A view that stays need not be drawn again: the time that would take goes into reading.
TEST(Blocks, AViewThatStaysIsReadInTheTimeThatDrawingItWouldTake) {
  StorePair stores(250);
  stores.fill(make_synthetic_run({.world = 1, .steps = 120, .chunk_events = 250}));
  const LaneId lane{0, ev::StreamId::compute};
  const auto depth = static_cast<std::uint8_t>(stores.whole.depth_count(lane) - 1);
  const std::int64_t begin = stores.whole.end_ns() / 4, end = stores.whole.end_ns() / 2;
  std::vector<Density> seen(4000);
  // No time to read, so one block a frame, of frames that may take as long as they like.
  const auto frame = [&](std::int64_t moved) {
    stores.sealed.limit_reading(std::chrono::nanoseconds(0), std::chrono::minutes(1));
    stores.sealed.density(lane, depth, begin + moved, end + moved, seen);
    return stores.sealed.wants_more();
  };
  for (std::int64_t moved = 0; moved < 5; ++moved) EXPECT_TRUE(frame(moved)) << "it is another view";
  EXPECT_FALSE(frame(4)) << "it stayed, and is not whole";
  stores.sealed.limit_reading(std::nullopt);
}

TEST(Cache, KeepsWhatIsLookedAtAndWhatCameLast) {
  BlockCache cache;
  cache.set_limit(100);
  const auto put = [&](std::uint32_t block, std::size_t bytes) {
    cache.put({.rank = 0, .block = block, .part = 0}, std::make_shared<int>(7), bytes);
  };
  const auto has = [&](std::uint32_t block) {
    return cache.find({.rank = 0, .block = block, .part = 0}) != nullptr;
  };
  put(1, 40);
  put(2, 40);
  EXPECT_TRUE(has(1));  // used: 2 is the older one now
  put(3, 40);
  EXPECT_EQ(cache.bytes(), 80U);
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(2));
  put(3, 10);
  EXPECT_EQ(cache.bytes(), 50U);
  cache.clear();
  // Putting forgets nothing as long as there is room, and what was found stays where it is.
  put(5, 40);
  const BlockCache::Held* const held = cache.find({.rank = 0, .block = 5, .part = 0});
  const std::uint64_t version = cache.version();
  put(6, 40);
  EXPECT_EQ(cache.version(), version);
  held->used = true;  // as who draws it from here marks it
  put(7, 40);
  EXPECT_GT(cache.version(), version);
  EXPECT_EQ(cache.find({.rank = 0, .block = 5, .part = 0}), held);
  EXPECT_FALSE(has(6));
  EXPECT_TRUE(has(7));
  // All are in use: each is spared once, and the newest is not what goes.
  put(8, 100);
  EXPECT_EQ(cache.bytes(), 100U);
  EXPECT_TRUE(has(8));
  put(4, 500);  // larger than the bound: alone
  EXPECT_EQ(cache.bytes(), 500U);
  EXPECT_TRUE(has(4));
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0U);
}

/// Each is checked by what lies between it and the one before: a sum of two that can be may be one that
/// cannot.
TEST(Blocks, StatusesSinceTimesThatCannotBeAreRefused) {
  const auto read = [](std::int64_t first, std::int64_t later) {
    std::vector<std::byte> bytes;
    ByteWriter out(bytes);
    out.fixed(std::uint8_t{1});
    for (const std::uint64_t value : {2, 0, 0}) out.varint(value);  // two parameters, their status and cause
    for (const std::int64_t time : {first, later}) {
      out.varint(1);
      out.varint(zigzag(time));
    }
    for (int i = 0; i < 4; ++i) out.varint(0);  // module and gather of each
    const std::vector<std::byte> packed = pack(bytes);
    return decode_statuses(packed.data(), packed.size()).at(1).since_ns;
  };
  constexpr std::int64_t kMost = (std::int64_t{1} << 62) - 1;
  EXPECT_EQ(read(kMost - 5, 5), kMost);
  EXPECT_EQ(read(5 - kMost, -5), -kMost);
  EXPECT_THROW((void)read(kMost, 1), std::runtime_error);
  EXPECT_THROW((void)read(-kMost, -1), std::runtime_error);
  EXPECT_THROW((void)read(INT64_MAX, INT64_MAX), std::runtime_error);
}

}  // namespace
}  // namespace shardscope::store
