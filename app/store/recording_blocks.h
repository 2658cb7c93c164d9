// The blocks stored in the tables of a recording, and reading of rows while the recording is open.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "app/store/block.h"
#include "app/store/block_access.h"
#include "app/store/database.h"

namespace shardscope::store {

/// Reads rows of an open recording; shares ownership of `database`. `keeps_a_part`: the recording has limits,
/// so its recorder may delete rows while it is read.
[[nodiscard]] std::unique_ptr<BlockRows> rows_of(std::shared_ptr<Database> database, bool keeps_a_part);

/// Rows of one part of a recording (rotation.h). Row ids are unique across parts.
struct PartOfRows {
  std::int64_t first_row = 1;    ///< smaller ids belong to earlier parts
  std::set<std::int64_t> moved;  ///< rows whose blocks are in the next part
  std::unique_ptr<BlockRows> rows;
};
/// Rows of all parts, oldest first.
[[nodiscard]] std::unique_ptr<BlockRows> rows_of(std::vector<PartOfRows> parts);

/// Contents of tables `blocks` and `tails`, without the blocks.
struct StoredBlocks {
  std::vector<std::int64_t> rest;            ///< chunks after the last block of their rank
  std::map<std::uint32_t, BlockTail> tails;  ///< by rank; only in a finished recording
};
enum class Verify : std::uint8_t;
/// A row of table `blocks`, which decode_block() and decode_head() read.
struct StoredBlock {
  std::int64_t row = 0;
  std::uint32_t rank = 0;  ///< from table `chunks`; the block must have the same
  std::span<const std::byte> bytes;
};
/// Calls `take` with each block, in order of row id. Throws std::runtime_error if anything is damaged or does
/// not match the rows of table `chunks`. The caller must then rebuild all blocks from the events, those
/// already taken included. The events in table `chunks` are read only to verify them.
[[nodiscard]] StoredBlocks read_blocks(Database& database, Verify verify,
                                       const std::function<void(const StoredBlock&)>& take);

}  // namespace shardscope::store
