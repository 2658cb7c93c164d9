// Views of dozens of blocks of a rank, drawn from tiles (tile.h) where these have sufficiently narrow
// buckets.
#include <algorithm>

#include "app/store/rank_run.h"
#include "app/store/tile.h"

namespace shardscope::store {

RankRun::Tile RankRun::tile(std::size_t group, ev::StreamId stream, std::uint8_t depth) const {
  const std::uint32_t row = tile_row(stream, depth);
  const std::size_t whole = blocks_.size() / kTileBlocks;
  if (group == whole && open_tile_blocks_ != 0 && open_tile_blocks_ == blocks_.size() % kTileBlocks) {
    const DensityPyramid* const levels = open_tile_.levels(row);
    return {.levels = levels, .stored = levels != nullptr};
  }
  std::vector<KnownTile>& tiles = tiles_[row];
  if (tiles.size() <= group) tiles.resize(group + 1);
  KnownTile& known = tiles[group];
  const std::size_t end = std::min((group + 1) * kTileBlocks, blocks_.size());
  if (known.none_of == end) return {};
  if (known.held == nullptr || known.as_of != access_.page_version()) {
    const BlockAccess::TileRead read =
        access_.read_tile(blocks_[end - 1], static_cast<std::uint32_t>(gone_ / kTileBlocks + group), row);
    known.held = read.held;
    known.as_of = access_.page_version();
    if (!read.stored) known.none_of = end;
    if (read.held == nullptr) return {.levels = nullptr, .stored = read.stored};
  }
  known.held->used = true;
  return {.levels = static_cast<const DensityPyramid*>(known.held->value.get()),
          .stored = true,
          .kept = known.held->value};
}

std::vector<TileRow> RankRun::tile_of_pages() const {
  TileMaker tile;
  for (auto block = blocks_.end() - std::ptrdiff_t{kTileBlocks}; block != blocks_.end(); ++block) {
    const std::vector<std::byte> page = access_.packed(block->page, block->spilled.page);
    if (page.empty()) return {};  // from a recording, which stores its tile or has none
    tile.append(decode_page(page.data(), page.size(), DensityPyramid::Levels::finest));
  }
  return tile.rows();
}

bool RankRun::wants_tile(const Range& range, ev::StreamId stream, std::uint8_t depth,
                         double bucket_ns) const {
  const RowSums& sums = sums_[static_cast<std::size_t>(stream)];
  const std::size_t first = range.first / kTileBlocks * kTileBlocks;
  const std::size_t end = std::min(first + kTileBlocks, blocks_.size());
  if (end - first < 2) return false;
  // Only in a rank's first block a lane has no begin time.
  const std::int64_t begin_ns = std::max(sums.begin_ns(first), floor_[first]);
  const std::int64_t end_ns = sums.end_ns(end - 1);
  if (end_ns <= begin_ns || !tile_may_cover(end_ns - begin_ns, bucket_ns)) return false;
  bool finer = false;
  for (std::size_t i = range.first; i < range.last && !finer; ++i) {
    const std::uint8_t shift = sums.shift(depth, i);
    finer = shift != RowSums::kNone && !DensityPyramid::covers(shift, bucket_ns);
  }
  if (!finer) return false;
  // A damaged block is a gap in each of its rows; a tile would still show it.
  return damage_in_sums_ == 0 || std::none_of(blocks_.begin() + static_cast<std::ptrdiff_t>(first),
                                              blocks_.begin() + static_cast<std::ptrdiff_t>(end),
                                              [](const Block& block) { return block.damaged; });
}

void RankRun::density_of_blocks(const Range& range, ev::StreamId stream, std::uint8_t depth,
                                const DensityColumns& columns) const {
  const RowSums& sums = sums_[static_cast<std::size_t>(stream)];
  const bool each = worth_reading(range);
  Range rest{range.first, range.first};  // blocks up to here that are not drawn from tiles
  const auto draw = [&](const Range& part) {
    if (part.first == part.last) return;
    if (!each) return density_of_pages(part, stream, depth, columns);
    for (std::size_t i = part.first; i < part.last; ++i) density_of(i, stream, depth, columns);
  };
  while (rest.last < range.last) {
    const Range part{rest.last, std::min(range.last, (rest.last / kTileBlocks + 1) * kTileBlocks)};
    Tile tile;
    if (wants_tile(part, stream, depth, columns.bucket_ns()))
      tile = this->tile(part.first / kTileBlocks, stream, depth);
    rest.last = part.last;
    // A tile that is too coarse is read in vain, once.
    if (!tile.stored || (tile.levels != nullptr && !tile.levels->covers(columns.bucket_ns()))) continue;
    draw({rest.first, part.first});
    if (tile.levels != nullptr) {
      tile.levels->add_to(columns);
    } else {
      // No time to read it: drawn from the levels of the whole row, without reading a block.
      sums.levels(depth).add_to(columns, sums.begin_ns(part.first), sums.end_ns(part.last - 1));
    }
    rest.first = part.last;
  }
  draw(rest);
}

}  // namespace shardscope::store
