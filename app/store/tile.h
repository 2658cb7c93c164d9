// Tiles: levels of detail of one row over 16 blocks of a rank, in one piece. A view of dozens of blocks is
// drawn from a few of them, where the blocks' own levels of detail would have to be read and drawn one by
// one. docs/recording.md, "Tiles", specifies how they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

/// Blocks of a rank [16 i, 16 i + 16) have a tile.
inline constexpr std::size_t kTileBlocks = 16;
/// Most buckets of a row.
inline constexpr std::size_t kTileLeaves = 2048;
/// Bits of tile_row().
inline constexpr unsigned kTileRowBits = 11;

/// Which row of its rank a tile is of; depth Store::kWaits: the waits, which are spans of the compute lane.
[[nodiscard]] constexpr std::uint32_t tile_row(ev::StreamId stream, std::uint8_t depth) noexcept {
  constexpr std::uint32_t kDepths = 64;
  // The number that was behind the last lane when there were 16; lanes that came later are behind it.
  constexpr std::uint32_t kWaitsLane = 16;
  const auto lane = static_cast<std::uint32_t>(stream);
  return depth == Store::kWaits ? kWaitsLane * kDepths
                                : (lane < kWaitsLane ? lane : lane + 1) * kDepths + depth;
}

/// In table `tiles`: of the tile that ends with the block of row `last`.
[[nodiscard]] constexpr std::int64_t tile_id(std::int64_t last, std::uint32_t row) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(last) << kTileRowBits | row);
}

/// Whether a tile over this time is likely to have buckets as narrow as this. That it has them is known once
/// it is read: where its blocks are of very unlike lengths it may not.
[[nodiscard]] bool tile_may_cover(std::int64_t length_ns, double bucket_ns) noexcept;

/// Puts a tile together.
class TileMaker {
 public:
  /// The levels of detail of the next block; only the finest are looked at.
  void append(const BlockPage& page);
  /// The same for a stretch that has ended.
  void append(const RankState& ended);
  /// Levels of detail of a tile_row(); null where it holds nothing.
  [[nodiscard]] const DensityPyramid* levels(std::uint32_t row) const;
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Every row that holds anything, ascending.
  [[nodiscard]] std::vector<TileRow> rows() const;

 private:
  void add(std::uint32_t row, const DensityPyramid& levels);
  mutable std::map<std::uint32_t, DensityPyramid> rows_;  ///< settled when they are looked at
};

/// Throws std::runtime_error naming what is damaged.
[[nodiscard]] DensityPyramid decode_tile(const std::byte* data, std::size_t bytes);

}  // namespace shardscope::store
