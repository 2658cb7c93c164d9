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
  std::uint64_t sequence = 0;          ///< per rank, from 0, without gaps in a whole recording
  std::uint32_t parts = 1;             ///< stands for the sequences from `sequence` on (compaction.h)
  std::int64_t clock_offset_ns = 0;    ///< added to event times gives the collector's clock
  std::int64_t clock_residual_ns = 0;  ///< bound on the error of that sum
  std::uint64_t dropped_before = 0;    ///< events dropped since the chunk before, at the source or later
  std::uint64_t shed_before = 0;       ///< of these, the ones that a collector shed
  std::uint64_t lost_before = 0;       ///< messages missing on the way since the chunk before
  std::uint64_t lost_between = 0;      ///< of these, the ones missing between two collectors
  /// Where the dropped events were, rank clock. Equal: not known, so between the chunk before and this one.
  std::int64_t missing_begin_ns = 0, missing_end_ns = 0;
  /// In order of time within each lane; `ticks` holds nanoseconds of the rank's monotonic clock.
  std::vector<instrumentation::Event> events;

  struct Times {
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  /// Earliest and latest event, rank clock. Looks at every event.
  [[nodiscard]] Times times() const noexcept;
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Throws what decode() throws for a wrong checksum, size or version, without reading the events.
  static void verify(const std::byte* data, std::size_t bytes);
  enum class Part : std::uint8_t {
    all,
    states,  ///< parameter statuses, memory and gradient buckets: all that the state at a time is made of
    others,
  };
  /// Throws std::runtime_error naming what is damaged (checksum, size, version, column) of what it reads.
  /// A small chunk is one section: any part of it has all of its events.
  [[nodiscard]] static Chunk decode(const std::byte* data, std::size_t bytes, Part part = Part::all);
  /// Gives the events' memory to the next decode() of a part by this thread: half a megabyte that is asked
  /// for and given back with every block costs as much as its events.
  static void recycle(Chunk chunk) noexcept;
};

}  // namespace shardscope::store
