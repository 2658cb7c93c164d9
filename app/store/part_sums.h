// What the events of a recording's part sum up to, kept while it is written: the next part begins with it.
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

/// A sum and what goes with it: a row of table `sums`.
struct WholeSum {
  Block block;
  std::vector<ev::Event> rare;  ///< collector clock
  std::uint64_t events = 0;
  std::int64_t id = 0;  ///< of its last chunk
};

/// Which of a rank's rare events are kept: of a run without an end a limited number.
class RareEvents {
 public:
  /// Leaves in `rare`, of a rank's next events, what is kept.
  void limit(std::uint32_t rank, std::vector<ev::Event>& rare);

 private:
  struct Known {
    std::map<ev::EventKind, std::uint64_t> firsts;  ///< time of each kind of which the run's first is kept
    std::size_t each = 0;                           ///< of kinds of which each is kept
  };
  std::map<std::uint32_t, Known> ranks_;
};

/// Of a chunk with id `id`, on the collector's clock; nothing where its block has none.
[[nodiscard]] std::vector<ev::Event> rare_events_of(const Block& block, const Chunk& chunk);
/// The last step that a block has an event of.
[[nodiscard]] std::optional<std::uint32_t> last_step_of(const Block& block);

/// One sum of each rank, or a few where counts would not fit one. [Note: sums are made as blocks are]
class PartSums {
 public:
  /// A block was written: `packed` as encode_block() gave it.
  void add(const std::vector<std::byte>& packed, std::int64_t id, const Chunk& chunk);
  /// Of all blocks since clear(), by rank and in order.
  [[nodiscard]] std::vector<WholeSum> sums() const;
  void clear() { ranks_.clear(); }
  /// The last step of which a block had an event, of all of them.
  [[nodiscard]] std::optional<std::uint32_t> last_step() const noexcept { return last_step_; }

 private:
  std::map<std::uint32_t, std::vector<WholeSum>> ranks_;
  RareEvents rare_;
  std::optional<std::uint32_t> last_step_;
};

/// [Note: sums are made as blocks are]
/// To begin a part with the sums of the part before it, that part's blocks could be read back when it ends:
/// for a file of a gigabyte that takes seconds, in which the recorder's thread records nothing. Each block is
/// added to its rank's sum when it is written instead. That costs a few kilobytes of memory for each rank,
/// and a part ends in the time that it takes to write one sum of each rank.

}  // namespace shardscope::store
