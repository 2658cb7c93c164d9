// Makes the file with which a recording goes on: everything that the parts before it said of the run, and the
// events that are in no block yet. docs/recording.md, "Parts".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "app/store/block.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_sums.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Tables and first keys of a part.
void begin_parts(Database& database, const PartIdentity& identity);

struct NextPart {
  std::string before;            ///< path of the part that ends; all of it is committed
  PartIdentity identity;         ///< of the next one
  PartRow ended;                 ///< about the part that ends
  std::span<const Block> tails;  ///< state of each rank after its last block: BlockMaker::tails()
};
/// Makes the file at `path`, and waits until the disk has it. Throws std::runtime_error; then nothing has
/// changed, in `sums` either.
void make_next_part(const std::string& path, const NextPart& next, SumsWriter& sums, const Store& store);

/// Adds to the part that ends what the next one has too, what it was, and that it is followed.
void end_part(Database& database, const PartRow& ended, std::span<const Block> tails);

void write_tails(Database& database, std::span<const Block> tails);

}  // namespace shardscope::store
