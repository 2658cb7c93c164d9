// A run that is live, without a recording: its views are drawn from tiles and from levels of detail of whole
// rows as a recording's are, from the first blocks on.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "app/store/rank_state.h"
#include "app/store/tile.h"
#include "tests/app/store/row_picture.h"
#include "tests/app/store/same_store.h"
#include "tests/app/store/store_pair.h"

namespace shardscope::store {
namespace {

/// The row of most spans.
RowView view(std::int64_t begin_ns, std::int64_t end_ns) {
  return {.lane = {0, ev::StreamId::compute}, .depth = 5, .begin_ns = begin_ns, .end_ns = end_ns};
}

/// Columns that a shared bucket reaches into count it as well.
constexpr double kCountedMore = 0.04;

SyntheticRun long_run(std::uint32_t world = 1) {
  return make_synthetic_run({.world = world, .steps = 160, .chunk_events = 1024});
}

TEST(LiveRun, IsDrawnWholeWithoutReadingAsItGrows) {
  const SyntheticRun run = long_run();
  StorePair live(4096);
  live.set_tables(0, run.tables[0]);
  std::size_t chunks = 0;
  int looks = 0;
  for (const Chunk& chunk : run.chunks) {
    live.ingest(chunk);
    // 17 blocks or more: of fewer a view may want more than a row's levels of detail hold.
    if (++chunks < 17 * 4 || chunks % 8 != 0) continue;
    const std::int64_t end = live.sealed.end_ns();
    live.sealed.limit_reading(std::chrono::nanoseconds(0));
    const RowPicture columns = seen(live.sealed, view(0, end));
    EXPECT_FALSE(live.sealed.wants_more()) << chunks;
    live.sealed.limit_reading(std::nullopt);
    SCOPED_TRACE(chunks);
    EXPECT_TRUE(alike(seen(live.whole, view(0, end)), columns, kCountedMore));
    ++looks;
  }
  EXPECT_GT(looks, 10);
}

TEST(LiveRun, DrawsAViewOfDozensOfBlocksFromTiles) {
  const SyntheticRun run = long_run();
  StorePair live(1024);
  live.set_tables(0, run.tables[0]);
  for (const Chunk& chunk : run.chunks) live.ingest(chunk);
  const std::vector<std::int64_t> cuts = live.sealed.cuts(view(0, 1).lane);
  ASSERT_GT(cuts.size(), 10 * kTileBlocks);
  // Tiles in memory and the one that grows, in a view that whole rows are too coarse for.
  const RowView wide = view(cuts[cuts.size() - 44], live.sealed.end_ns());
  EXPECT_LE(frames_until_whole(live.sealed, wide), 4);
  EXPECT_TRUE(alike(seen(live.whole, wide), seen(live.sealed, wide), kCountedMore));
}

/// What is drawn from must not be evicted while other blocks are read for the same view.
TEST(LiveRun, IsDrawnRightThroughACacheThatHoldsNextToNothing) {
  const SyntheticRun run = long_run(2);
  StorePair live(1024);
  for (std::uint32_t rank = 0; rank < 2; ++rank) live.set_tables(rank, run.tables[rank]);
  live.sealed.set_cache_bytes(64 << 10);
  for (const Chunk& chunk : run.chunks) live.ingest(chunk);
  expect_same_density(live.whole, live.sealed, 9, 30);
  const std::vector<std::int64_t> cuts = live.sealed.cuts(view(0, 1).lane);
  for (std::size_t first = 0; first + 5 * kTileBlocks < cuts.size(); first += 7) {
    for (const std::size_t blocks : {20, 40, 70}) {
      SCOPED_TRACE(std::to_string(first) + " + " + std::to_string(blocks));
      const RowView some = view(cuts[first] + 1, cuts[first + blocks]);
      EXPECT_TRUE(alike(seen(live.whole, some), seen(live.sealed, some), kCountedMore));
    }
  }
}

/// As if there were more ranks than have room for what grows.
void add_ranks(Store& store) {
  for (std::uint32_t rank = 0; rank <= kRanksWithRoom; ++rank) {
    RankRow row;
    row.rank = rank;
    store.set_rank(row);
  }
}

TEST(LiveRun, OfManyRanksHasATileOfEverySixteenBlocks) {
  const SyntheticRun run = long_run();
  StorePair live(1024);
  live.set_tables(0, run.tables[0]);
  add_ranks(live.sealed);
  for (const Chunk& chunk : run.chunks) live.ingest(chunk);
  const std::vector<std::int64_t> cuts = live.sealed.cuts(view(0, 1).lane);
  ASSERT_GT(cuts.size(), 10 * kTileBlocks);
  // Three whole tiles, in a view that whole rows are too coarse for.
  const RowView wide = view(cuts[4 * kTileBlocks] + 1, cuts[7 * kTileBlocks] - 1);
  EXPECT_LE(frames_until_whole(live.sealed, wide), 5);
  EXPECT_TRUE(alike(seen(live.whole, wide), seen(live.sealed, wide), kCountedMore));
  // The newest blocks, less than sixteen, are read one by one.
  const RowView newest = view(cuts[cuts.size() - 1 - cuts.size() % kTileBlocks], live.sealed.end_ns());
  EXPECT_LE(frames_until_whole(live.sealed, newest), 18);
  EXPECT_TRUE(alike(seen(live.whole, newest), seen(live.sealed, newest), kCountedMore));
}

TEST(LiveRun, OfManyRanksKeepsNoTileThatGrows) {
  const SyntheticRun run = long_run(2);
  Store few, many;
  for (Store* store : {&few, &many}) store->seal_after(512);
  add_ranks(many);
  const std::size_t of_the_others = many.resident_bytes();  // what ranks take of which nothing has come
  for (const Chunk& chunk : run.chunks) {
    few.ingest(chunk);
    many.ingest(chunk);
  }
  EXPECT_LT(many.resident_bytes() - of_the_others + (std::size_t{1} << 20), few.resident_bytes());
  expect_same_density(few, many, 5, 10);
}

}  // namespace
}  // namespace shardscope::store
