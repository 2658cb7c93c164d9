// A chunk: some consecutive events of one rank, the unit that is recorded, sent to viewers and ingested.
// Encoded it is columnar and zstd-compressed, with a checksum; docs/recording.md specifies it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::store {

class Chunk {
 public:
  std::uint32_t rank = 0;
  static constexpr std::uint32_t kMaxParts = 1U << 16;
  std::uint64_t sequence = 0;          ///< per rank, from 0, consecutive in a complete recording
  std::uint32_t parts = 1;             ///< number of sequences it covers, from `sequence` on (compaction.h)
  std::int64_t clock_offset_ns = 0;    ///< added to event times gives the collector's clock
  std::int64_t clock_residual_ns = 0;  ///< bound on the error of that sum
  std::uint64_t dropped_before = 0;    ///< events dropped since the previous chunk, by rank or collector
  std::uint64_t shed_before = 0;       ///< of these, those shed by a collector
  std::uint64_t lost_before = 0;       ///< messages lost since the previous chunk
  std::uint64_t lost_between = 0;      ///< of these, those lost between two collectors
  /// Interval of the dropped events, rank clock. Equal: unknown, so between the previous chunk and this one.
  std::int64_t missing_begin_ns = 0, missing_end_ns = 0;
  /// In order of time within each lane; `ticks` holds nanoseconds of the rank's monotonic clock.
  std::vector<instrumentation::Event> events;

  struct Times {
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  /// Earliest and latest event, rank clock. Reads every event.
  [[nodiscard]] Times times() const noexcept;
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Throws as decode() for a wrong checksum, size or version, without decoding the events.
  static void verify(const std::byte* data, std::size_t bytes);
  enum class Part : std::uint8_t {
    all,
    states,  ///< parameter statuses, memory and gradient buckets: the events that make up the state at a time
    others,
  };
  /// Throws std::runtime_error naming what is damaged (checksum, size, version, column) in the part it reads.
  /// A small chunk is one section: decoding any part returns all of its events.
  [[nodiscard]] static Chunk decode(const std::byte* data, std::size_t bytes, Part part = Part::all);
  /// Reuses the events' memory in this thread's next decode() of a part: allocating and freeing half a
  /// megabyte with every block costs as much as decoding its events.
  static void recycle(Chunk chunk) noexcept;
};

}  // namespace shardscope::store
