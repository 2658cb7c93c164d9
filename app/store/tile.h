// Tiles: levels of detail of one row over 16 blocks of a rank, stored as one. A view of dozens of blocks is
// drawn from a few tiles, instead of reading and drawing the blocks' own levels of detail one by
// one. docs/recording.md, "Tiles", specifies the encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

/// Blocks [16 i, 16 i + 16) of a rank have one tile per row.
inline constexpr std::size_t kTileBlocks = 16;
/// Most buckets of a row.
inline constexpr std::size_t kTileLeaves = 2048;
/// Bits of tile_row().
inline constexpr unsigned kTileRowBits = 11;

/// Number of a row within its rank; depth Store::kWaits: the waits, which are spans of the compute lane.
[[nodiscard]] constexpr std::uint32_t tile_row(ev::StreamId stream, std::uint8_t depth) noexcept {
  constexpr std::uint32_t kDepths = 64;
  // One past the last lane when there were 16 lanes; lanes added later have higher numbers.
  constexpr std::uint32_t kWaitsLane = 16;
  const auto lane = static_cast<std::uint32_t>(stream);
  return depth == Store::kWaits ? kWaitsLane * kDepths
                                : (lane < kWaitsLane ? lane : lane + 1) * kDepths + depth;
}

/// Key in table `tiles`: the tile that ends with the block of row `last`.
[[nodiscard]] constexpr std::int64_t tile_id(std::int64_t last, std::uint32_t row) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(last) << kTileRowBits | row);
}

/// Whether a tile of this length is likely to have buckets of this width. Only reading it
/// shows: where its blocks differ much in length it may not.
[[nodiscard]] bool tile_may_cover(std::int64_t length_ns, double bucket_ns) noexcept;

/// Builds a tile from blocks.
class TileMaker {
 public:
  /// Adds the levels of detail of the next block; only the finest are used.
  void append(const BlockPage& page);
  /// The same for a block that has been closed.
  void append(const RankState& ended);
  /// Levels of detail of a tile_row(); null where it is empty.
  [[nodiscard]] const DensityPyramid* levels(std::uint32_t row) const;
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Every row that is not empty, ascending.
  [[nodiscard]] std::vector<TileRow> rows() const;

 private:
  void add(std::uint32_t row, const DensityPyramid& levels);
  mutable std::map<std::uint32_t, DensityPyramid> rows_;  ///< settled on access
};

/// Throws std::runtime_error naming the damaged part.
[[nodiscard]] DensityPyramid decode_tile(const std::byte* data, std::size_t bytes);

}  // namespace shardscope::store
