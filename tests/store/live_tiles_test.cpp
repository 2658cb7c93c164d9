// A run that is live, without a recording: its views are drawn from tiles and from levels of detail of whole
// rows as a recording's are, from the first blocks on.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "app/store/rank_state.h"
#include "app/store/tile.h"
#include "tests/store/same_store.h"
#include "tests/store/synthetic_run.h"

namespace shardscope::store {
namespace {

constexpr std::size_t kColumns = 1600;
constexpr LaneId kLane{0, ev::StreamId::compute};
constexpr std::uint8_t kDepth = 5;  ///< most spans

struct Live {
  Store whole, sealed;
  explicit Live(std::size_t seal_events) {
    whole.seal_after(SIZE_MAX);
    sealed.seal_after(seal_events);
  }
  void ingest(const Chunk& chunk) {
    whole.ingest(chunk);
    sealed.ingest(chunk);
  }
};

SyntheticRun long_run(std::uint32_t world = 1) {
  return make_synthetic_run({.world = world, .steps = 160, .chunk_events = 1024});
}

std::vector<Density> seen(const Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  std::vector<Density> columns(kColumns);
  store.density(kLane, kDepth, begin_ns, end_ns, columns);
  return columns;
}

/// Frames that read one thing each, until nothing is coarser than it could be.
int frames_until_whole(const Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  int frames = 0;
  do {
    store.limit_reading(std::chrono::nanoseconds(0));
    (void)seen(store, begin_ns, end_ns);
  } while (store.wants_more() && ++frames < 1000);
  store.limit_reading(std::nullopt);
  return frames + 1;
}

/// `exact` is drawn from every span.
void expect_alike(const std::vector<Density>& exact, const std::vector<Density>& columns) {
  double left = 0, right = 0, difference = 0, count = 0, counted = 0;
  for (std::size_t c = 0; c < kColumns; ++c) {
    left += exact[c].busy;
    right += columns[c].busy;
    difference += std::abs(exact[c].busy - columns[c].busy);
    count += exact[c].count;
    counted += columns[c].count;
  }
  EXPECT_NEAR(left, right, 0.01 * kColumns);
  EXPECT_LT(difference, 0.06 * kColumns);
  // A column that a shared bucket reaches into counts it as well.
  EXPECT_NEAR(counted, count, 0.04 * count);
}

TEST(LiveRun, IsDrawnWholeWithoutReadingAsItGrows) {
  const SyntheticRun run = long_run();
  Live live(4096);
  live.whole.set_tables(0, run.tables[0]);
  live.sealed.set_tables(0, run.tables[0]);
  std::size_t chunks = 0;
  int looks = 0;
  for (const Chunk& chunk : run.chunks) {
    live.ingest(chunk);
    // 17 blocks or more: of fewer a view may want more than a row's levels of detail hold.
    if (++chunks < 17 * 4 || chunks % 8 != 0) continue;
    const std::int64_t end = live.sealed.end_ns();
    live.sealed.limit_reading(std::chrono::nanoseconds(0));
    const std::vector<Density> columns = seen(live.sealed, 0, end);
    EXPECT_FALSE(live.sealed.wants_more()) << chunks;
    live.sealed.limit_reading(std::nullopt);
    SCOPED_TRACE(chunks);
    expect_alike(seen(live.whole, 0, end), columns);
    ++looks;
  }
  EXPECT_GT(looks, 10);
}

TEST(LiveRun, DrawsAViewOfDozensOfBlocksFromTiles) {
  const SyntheticRun run = long_run();
  Live live(1024);
  live.whole.set_tables(0, run.tables[0]);
  live.sealed.set_tables(0, run.tables[0]);
  for (const Chunk& chunk : run.chunks) live.ingest(chunk);
  const std::vector<std::int64_t> cuts = live.sealed.cuts(kLane);
  ASSERT_GT(cuts.size(), 10 * kTileBlocks);
  // Tiles in memory and the one that grows, in a view that whole rows are too coarse for.
  const std::int64_t begin = cuts[cuts.size() - 44], end = live.sealed.end_ns();
  EXPECT_LE(frames_until_whole(live.sealed, begin, end), 4);
  expect_alike(seen(live.whole, begin, end), seen(live.sealed, begin, end));
}

TEST(LiveRun, OfManyRanksKeepsNoTiles) {
  const SyntheticRun run = long_run(2);
  Store few, many;
  for (Store* store : {&few, &many}) store->seal_after(512);
  for (std::uint32_t rank = 0; rank <= kRanksWithRoom; ++rank) {
    RankRow row;
    row.rank = rank;
    many.set_rank(row);
  }
  for (const Chunk& chunk : run.chunks) {
    few.ingest(chunk);
    many.ingest(chunk);
  }
  EXPECT_LT(many.resident_bytes() + (std::size_t{1} << 20), few.resident_bytes());
  expect_same_density(few, many, 5, 10);
}

}  // namespace
}  // namespace shardscope::store
