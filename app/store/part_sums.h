// Sums of the blocks of the part that is being written. The next part begins with them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "app/store/block.h"
#include "app/store/chunk.h"
#include "instrumentation/emitter.h"

namespace shardscope::store {

/// A row of table `sums`: a sum with its rare events.
struct WholeSum {
  Block block;
  std::vector<ev::Event> rare;  ///< collector clock
  std::uint64_t events = 0;
  std::int64_t id = 0;  ///< id of its last chunk
};

/// Decides which rare events of a rank are kept. Their number is limited, since a run may be unbounded.
class RareEvents {
 public:
  /// Removes from `rare`, the next rare events of a rank, those that are not kept.
  void limit(std::uint32_t rank, std::vector<ev::Event>& rare);

 private:
  struct Known {
    std::map<ev::EventKind, std::uint64_t> firsts;  ///< by kind with only the first kept: its time
    std::size_t each = 0;                           ///< number of events of kinds with each kept
  };
  std::map<std::uint32_t, Known> ranks_;
};

/// The rare events of a chunk, on the collector's clock. Empty if `block`, its block, counts none.
[[nodiscard]] std::vector<ev::Event> rare_events_of(const Block& block, const Chunk& chunk);
/// The last step of which a block has a notable event.
[[nodiscard]] std::optional<std::uint32_t> last_step_of(const Block& block);

/// One sum for each rank; several if counts would overflow or chunks are missing.
/// [Note: sums are made as blocks are]
class PartSums {
 public:
  /// Adds a block that was written. `packed`: result of encode_block(). `id`: its row.
  void add(const std::vector<std::byte>& packed, std::int64_t id, const Chunk& chunk);
  /// The sums of all blocks since clear(), by rank and in order.
  [[nodiscard]] std::vector<WholeSum> sums() const;
  void clear() { ranks_.clear(); }
  /// The last step of which any block had a notable event. Not reset by clear().
  [[nodiscard]] std::optional<std::uint32_t> last_step() const noexcept { return last_step_; }

 private:
  std::map<std::uint32_t, std::vector<WholeSum>> ranks_;
  RareEvents rare_;
  std::optional<std::uint32_t> last_step_;
};

/// [Note: sums are made as blocks are]
/// A part begins with the sums of the part before it. Reading the blocks of that part back when it ends would
/// take seconds for a file of a gigabyte, and the recorder's thread could not record meanwhile. Instead, each
/// block is added to its rank's sum when it is written. This costs a few kilobytes of memory per rank, and a
/// change of parts takes only as long as writing one sum per rank.

}  // namespace shardscope::store
