#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/store/chunk.h"
#include "app/store/density_pyramid.h"
#include "app/store/recording_writer_state.h"
#include "app/store/tile.h"

namespace shardscope::store {

/// Inserts the row of a chunk. Returns the times of its events, rank clock.
Chunk::Times RecordingWriter::State::insert_row(std::int64_t id, const Chunk& chunk,
                                                std::span<const std::byte> encoded) {
  const Chunk::Times times = chunk.times();
  const auto [begin, end] = times;
  if (!chunk.events.empty()) early_stop.reached(end + chunk.clock_offset_ns);
  Statement& add_chunk = out->statements().add_chunk;
  add_chunk.bind(1, std::int64_t{chunk.rank}).bind(2, static_cast<std::int64_t>(chunk.sequence));
  add_chunk.bind(3, begin).bind(4, end);
  add_chunk.bind(5, chunk.clock_offset_ns).bind(6, chunk.clock_residual_ns);
  add_chunk.bind(7, static_cast<std::int64_t>(chunk.events.size()));
  add_chunk.bind(8, static_cast<std::int64_t>(chunk.dropped_before));
  add_chunk.bind(9, static_cast<std::int64_t>(chunk.lost_before)).bind(10, std::int64_t{chunk.parts});
  add_chunk.bind(11, encoded).bind(12, id).run();
  return times;
}

void RecordingWriter::State::add_block_of(std::int64_t id, const Chunk& chunk, std::size_t chunk_bytes) {
  const std::optional<Block> block = blocks.make(chunk);
  if (!block) return;
  const std::vector<std::byte> packed = encode_block(*block);
  WrittenFile::Statements& statements = out->statements();
  statements.add_block.bind(1, id).bind(2, packed).run();
  statements.add_levels.bind(1, id).bind(2, block->statuses).bind(3, block->page).run();
  if (tails_of_part.erase(chunk.rank) != 0) statements.drop_tail.bind(1, std::int64_t{chunk.rank}).run();
  if (rotation.on()) count_block(*block);
  if (sums) {
    // No tiles: they cover fixed groups counted from a rank's first block, and here blocks may be deleted.
    constexpr std::size_t kRowsOfABlock = 2048;  // estimate of unused page space and keys
    sums->wrote(*block, id,
                chunk_bytes + packed.size() + block->statuses.size() + block->page.size() + kRowsOfABlock);
    sums->wrote_to_part(packed, id, chunk);
    return;
  }
  std::vector<std::int64_t>& rows = untiled[chunk.rank];
  rows.push_back(id);
  if (rows.size() < kTileBlocks) return;
  add_tile_of(rows);
  rows.clear();
}

/// Adds the tile of a group of blocks. Their levels of detail are read back from the file instead of kept, so
/// that memory does not grow with the number of ranks.
void RecordingWriter::State::add_tile_of(const std::vector<std::int64_t>& rows) {
  TileMaker tile;
  Statement& get_levels = out->statements().get_levels;
  for (const std::int64_t id : rows) {
    get_levels.bind(1, id);
    if (!get_levels.step()) throw std::runtime_error("levels of detail that were written are not there");
    const std::span<const std::byte> bytes = get_levels.bytes(0);
    tile.append(decode_page(bytes.data(), bytes.size(), DensityPyramid::Levels::finest));
    get_levels.reset();
  }
  for (const TileRow& row : tile.rows()) {
    out->statements().add_tile.bind(1, tile_id(rows.back(), row.row)).bind(2, row.bytes).run();
  }
}

/// Joins small chunks into one and adds its block, within the open transaction: after a crash the file has
/// either the small chunks or the joined one. The chunks are read back from the file instead of kept, so that
/// memory does not grow with the number of ranks.
void RecordingWriter::State::complete(const Compaction::Rows& rows) {
  std::vector<Chunk> parts;
  parts.reserve(rows.size());
  std::size_t read = 0;
  Statement& get_chunk = out->statements().get_chunk;
  for (const std::int64_t id : rows) {
    get_chunk.bind(1, id);
    if (!get_chunk.step()) return;
    const std::span<const std::byte> bytes = get_chunk.bytes(0);
    read += bytes.size();
    try {
      parts.push_back(Chunk::decode(bytes.data(), bytes.size()));
    } catch (const std::runtime_error&) {
      get_chunk.reset();
      return;  // damaged when received: stored unchanged, reported by readers
    }
    get_chunk.reset();
  }
  const Chunk whole = joined(parts);
  std::size_t bytes = read;
  if (rows.size() > 1) {
    for (const std::int64_t id : rows) out->statements().drop_chunk.bind(1, id).run();
    // Stored under the id of the last one, because a later large chunk of the rank may have been stored
    // since.
    const std::vector<std::byte> encoded = whole.encode();
    bytes = encoded.size();
    insert_row(rows.back(), whole, encoded);
  }
  add_block_of(rows.back(), whole, bytes);
}

void RecordingWriter::State::insert(const Chunk& chunk, std::span<const std::byte> encoded) {
  const std::int64_t id = ++last_id;
  const auto [begin, end] = insert_row(id, chunk, encoded);
  for (const Compaction::Rows& rows : compaction.wrote(id, chunk)) {
    if (rows == Compaction::Rows{id}) {
      add_block_of(id, chunk, encoded.size());  // still in memory: need not be read back
    } else {
      complete(rows);
    }
  }
  chunks += chunk.parts;
  events += chunk.events.size();
  if (!chunk.events.empty()) {
    origin_ns = std::min(origin_ns.value_or(INT64_MAX), begin + chunk.clock_offset_ns);
    if (!std::exchange(fill.has_events, true)) fill.first_ns = fill.last_ns = begin + chunk.clock_offset_ns;
    fill.last_ns = std::max(fill.last_ns, end + chunk.clock_offset_ns);
  }
}

}  // namespace shardscope::store
