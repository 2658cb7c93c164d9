// The blocks of a recording, as stored in its tables, and access to its rows while it is open.
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

/// Reads rows of an open recording for as long as it lives.
/// `keeps_a_part`: the recording has limits, so its recorder may delete rows while it is read.
[[nodiscard]] std::unique_ptr<BlockRows> rows_of(std::shared_ptr<Database> database, bool keeps_a_part);

/// Rows of a part of a recording (rotation.h). Ids are of all parts.
struct PartOfRows {
  std::int64_t first_row = 1;    ///< smaller ids are of the parts before
  std::set<std::int64_t> moved;  ///< rows whose blocks are in the part after it
  std::unique_ptr<BlockRows> rows;
};
/// Rows of all parts, oldest first.
[[nodiscard]] std::unique_ptr<BlockRows> rows_of(std::vector<PartOfRows> parts);

/// What tables `blocks` and `tails` say beside the blocks.
struct StoredBlocks {
  std::vector<std::int64_t> rest;            ///< rows after the last block of their ranks
  std::map<std::uint32_t, BlockTail> tails;  ///< by rank, of a recording that was finished
};
enum class Verify : std::uint8_t;
/// A row of table `blocks`, which decode_block() and decode_head() read.
struct StoredBlock {
  std::int64_t row = 0;
  std::uint32_t rank = 0;  ///< whose the events are: the block must say the same
  std::span<const std::byte> bytes;
};
/// Hands each block to `take`, in order of rows. Throws std::runtime_error where anything is damaged or does
/// not fit the rows: then the blocks have to be made again from the events, those that were taken as well.
/// Table `chunks` itself is read only to verify it.
[[nodiscard]] StoredBlocks read_blocks(Database& database, Verify verify,
                                       const std::function<void(const StoredBlock&)>& take);

}  // namespace shardscope::store
