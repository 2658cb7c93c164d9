// A block: a complete interval of one rank's events, with what is needed to show it without reading the
// events (levels of detail, sums) and to decode them without the blocks before (a keyframe).
// docs/recording.md, "Blocks", specifies the encoding. Times are on the collector's clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "app/store/density_pyramid.h"
#include "app/store/kind_set.h"
#include "app/store/pauses.h"
#include "app/store/rank_state.h"
#include "app/store/spill_file.h"
#include "app/store/store_rows.h"

namespace shardscope::store {

/// Most buckets of a row in a block's own levels of detail; finer ones are in its page.
inline constexpr std::size_t kBlockBuckets = 16;

struct BlockLane {
  std::int64_t end_ns =
      Lane::kNever;                  ///< the lane's latest event; the block begins at the keyframe's last_ns
  std::vector<DensityPyramid> rows;  ///< by depth, coarse
  std::vector<std::uint8_t> fine;    ///< by depth: shift() of the page's levels of detail
};

struct BlockMemory {
  std::uint32_t changes = 0;
  std::vector<MemoryIndex::Leaf> leaves;
};

struct BlockPeaks {
  MemorySample all, model_state;
};

/// A row of a tile (tile.h).
struct TileRow {
  std::uint32_t row = 0;         ///< tile_row()
  std::vector<std::byte> bytes;  ///< packed; see decode_tile()
  SpillFile::Place spilled{};    ///< location of the bytes once they are in the temporary file
};

/// What identifies a block, and what is missing before it.
struct BlockOrigin {
  std::uint32_t rank = 0;
  std::uint64_t sequence = 0;
  std::uint32_t parts = 0, events = 0;
  // Events missing before it, as in Chunk.
  std::uint64_t dropped_before = 0, lost_before = 0, shed_before = 0, lost_between = 0;
  std::int64_t missing_begin_ns = 0, missing_end_ns = 0;
  std::int64_t clock_offset_ns = 0, clock_residual_ns = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< earliest and latest event
  bool gap = false;                       ///< events before it are missing
};

struct Block : BlockOrigin {
  /// State, at this block's end, of a span that was open when the block began.
  struct Carried {
    std::uint8_t stream = 0, depth = 0;
    std::int64_t end_ns = 0, mark_ns = 0;
  };

  RankKeyframe begin;
  std::array<std::vector<MemoryIndex::Change>, ev::kMemoryPoolCount> corrections;
  std::array<BlockMemory, ev::kMemoryPoolCount> memory;
  KindSet kinds;  ///< of instants; set when the run adds the block
  std::uint32_t gates = 0;
  // The run takes these over when it adds the block: blocks are most of the memory of a long run.
  std::vector<BlockLane> lanes = std::vector<BlockLane>(ev::kStreamCount);
  DensityPyramid waits;
  std::vector<BlockPeaks> peaks = std::vector<BlockPeaks>(ev::kMemoryPoolCount);
  std::vector<InstantCount> counts;  ///< of instants, and RankState::unmatched_ends()
  std::vector<Carried> carried;
  std::vector<SpanTotal> totals;
  std::vector<ev::Event> notable;  ///< RankState::notable()

  // Location of its events: rows of a recording, or a chunk in memory.
  std::vector<std::int64_t> rows;
  std::vector<std::byte> chunk;
  // Empty: stored in row rows[0] of the recording.
  std::vector<std::byte> page;
  std::vector<std::byte> statuses;  ///< of every parameter, when the block begins
  /// Rows of the tile that ends with this block, ascending; empty: none ends here, or the recording has it.
  std::vector<TileRow> tile;
  /// Location of chunk, page and statuses in the temporary file, for a long live run. Tiles have their own.
  struct Spilled {
    SpillFile::Place chunk, page, statuses;
  };
  Spilled spilled;
  bool damaged = false;  ///< found when it was read: shown as a gap
  bool sum = false;      ///< its events were not kept (block_sum.h) and cannot be read

  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Bytes of these members that can be spilled.
  [[nodiscard]] std::size_t packed_bytes() const noexcept;
};

/// The part of a block that a rank's figures need.
struct BlockHead : BlockOrigin {
  std::array<std::uint8_t, ev::kStreamCount> depths{};
  std::array<bool, ev::kMemoryPoolCount> has_memory{};
  std::array<BlockPeaks, ev::kMemoryPoolCount> peaks;  ///< where it has memory
  std::uint32_t gates = 0;
  std::vector<InstantCount> counts;
  std::vector<SpanTotal> totals;
  std::vector<ev::Event> notable;
};

/// A block of a recording in its stored form, decoded on first access.
struct PackedBlock {
  BlockOrigin origin;
  std::vector<std::byte> bytes;  ///< output of encode_block()
  std::int64_t row = 0;          ///< row of its events; unused for a sum
  bool sum = false;              ///< as Block::sum
  bool damaged = false;          ///< found when decoded, and reported
};

/// The finer levels of detail, read on demand.
struct BlockPage {
  std::array<std::vector<DensityPyramid>, ev::kStreamCount> lanes;  ///< by depth
  DensityPyramid waits;
  [[nodiscard]] std::size_t bytes() const noexcept;
};

/// State at the end of a rank's last block, with which the next events begin.
struct BlockTail {
  RankKeyframe begin;
  std::vector<ParamState> statuses;  ///< by parameter
};

/// Ends the block that `state` holds and clears it, after `ended(state)` has read its levels of detail.
/// `begin`: the keyframe at the block's begin. `pauses`: the rank's, back to the earliest begin of a span in
/// the block. The caller sets what identifies the events (sequence to gap, rows, chunk).
[[nodiscard]] Block seal(std::uint32_t rank, RankState& state, RankKeyframe begin, const Pauses& pauses,
                         const std::function<void(const RankState&)>& ended = {});

/// Without `page` and `statuses` of the block, which are stored separately.
[[nodiscard]] std::vector<std::byte> encode_block(const Block& block);
// All throw std::runtime_error naming the damaged part.
[[nodiscard]] Block decode_block(const std::byte* data, std::size_t bytes);
/// Rejects whatever decode_block() rejects, in a third of the time.
[[nodiscard]] BlockHead decode_head(const std::byte* data, std::size_t bytes);
[[nodiscard]] BlockPage decode_page(const std::byte* data, std::size_t bytes,
                                    DensityPyramid::Levels levels = DensityPyramid::Levels::all);
/// By parameter.
[[nodiscard]] std::vector<ParamState> decode_statuses(const std::byte* data, std::size_t bytes);

/// As missing_of(Chunk).
[[nodiscard]] Missing missing_of(const Block& block) noexcept;

}  // namespace shardscope::store
