// Compaction of a recording: the small chunks in which a live run is written and shown become large ones,
// which compress better and are found faster. Pure decisions; RecordingWriter carries them out.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "app/store/chunk.h"

namespace shardscope::store {

/// Joins chunks of one rank with consecutive sequences into one that stands for all of them. Times are moved
/// by the difference of the clock offsets, so that on the collector's clock nothing moves; the residual is
/// the largest. Only the first may have events missing before it.
[[nodiscard]] Chunk joined(std::span<const Chunk> chunks);

/// Decides which rows become one block: they are joined, or a large one stays as it is. Holds a few integers
/// per chunk that is not yet large, no events.
class Compaction {
 public:
  /// A question about the state at a time reads a block of every rank: fewer events are read faster, more
  /// take less room.
  static constexpr std::uint32_t kJoinedEvents = 1U << 13;
  static constexpr std::uint32_t kLargeEvents =
      kJoinedEvents / 2;  ///< left as it is: joining would gain little and costs as much as recording

  using Rows = std::vector<std::int64_t>;  ///< ids, oldest first
  /// A chunk was written as row `id`. Returns groups of rows, oldest first, each of which is a block now.
  [[nodiscard]] std::vector<Rows> wrote(std::int64_t id, const Chunk& chunk);
  /// What is left at the end.
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
