// Compaction of a recording: joins the small chunks in which a live run is recorded and sent to large ones,
// which compress better and are found faster. Pure decisions; RecordingWriter carries them out.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "app/store/chunk.h"

namespace shardscope::store {

/// Joins chunks of one rank with consecutive sequences into one that covers all of them. Times are shifted by
/// the difference of the clock offsets, so that they stay the same on the collector's clock; the residual is
/// the largest. Only the first chunk may have events missing before it.
[[nodiscard]] Chunk joined(std::span<const Chunk> chunks);

/// Decides which rows become one block: small ones are joined, a large one stays as it is. Holds a few
/// integers per chunk that is not in a block yet, no events.
class Compaction {
 public:
  /// A query for the state at a time reads a block of every rank: smaller blocks are read faster, larger ones
  /// need less space.
  static constexpr std::uint32_t kJoinedEvents = 1U << 13;
  static constexpr std::uint32_t kLargeEvents =
      kJoinedEvents / 2;  ///< kept as it is: joining would gain little and costs as much as recording

  using Rows = std::vector<std::int64_t>;  ///< ids, oldest first
  /// A chunk was written as row `id`. Returns groups of rows, oldest first, each of which is a block now.
  [[nodiscard]] std::vector<Rows> wrote(std::int64_t id, const Chunk& chunk);
  /// The remaining groups, when recording ends.
  [[nodiscard]] std::vector<Rows> rest();

 private:
  struct Pending {
    Rows rows;
    std::uint64_t events = 0;
  };
  static void take(Pending& pending, std::vector<Rows>& out);
  std::map<std::uint32_t, Pending> ranks_;
};

}  // namespace shardscope::store
