// Makes the next part of a recording, with the tables of the run from the part before it, and the chunks that
// are not in a block yet. docs/recording.md, "Parts".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "app/store/block.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_sums.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Creates the tables of a part and writes its identity to `meta`.
void begin_parts(Database& database, const PartIdentity& identity);

struct NextPart {
  std::string before;            ///< path of the part that ends, which is fully committed
  PartIdentity identity;         ///< of the next one
  PartRow ended;                 ///< row of the part that ends
  std::span<const Block> tails;  ///< state of each rank after its last block: BlockMaker::tails()
};
/// Makes the file at `path` and waits until it is on the disk. Throws std::runtime_error; `sums` is then
/// unchanged, and the caller removes the file.
void make_next_part(const std::string& path, const NextPart& next, SumsWriter& sums, const Store& store);

/// Completes the part that ends: writes which chunks are also in the next part (`moved`), `tails`, its row in
/// `parts`, and the mark that it is followed.
void end_part(Database& database, const PartRow& ended, std::span<const Block> tails);

void write_tails(Database& database, std::span<const Block> tails);

}  // namespace shardscope::store
