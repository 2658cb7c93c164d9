// Intervals in which a rank lacks events: dropped, shed, lost, damaged, or not emitted at the level of
// detail. Its activity there is unknown: neither computation nor idle time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/analysis/spans.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Intervals in [begin, end) without events up to level `needed`. Does not detect a level that was never
/// recorded, since it has no events at all.
[[nodiscard]] IntervalSet unrecorded(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                     std::int64_t end_ns, ev::Detail needed);

/// Completeness of a rank's recording within [begin, end).
struct Recorded {
  bool events_missing = false;       ///< dropped, shed, lost or damaged
  std::optional<ev::Detail> lowest;  ///< level of detail; nullopt if it never changed in the run
  [[nodiscard]] bool whole(ev::Detail needed) const noexcept {
    return !events_missing && (!lowest || *lowest >= needed);
  }
};
[[nodiscard]] Recorded recorded_in(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                   std::int64_t end_ns);

/// The recorded part of a span that ended in [begin, end) and overlaps `missing`.
struct Remainder {
  ev::StreamId stream{};
  ev::EventKind begin{};  ///< kind of the begin
  Interval interval;      ///< the span was open at least here
};
struct Remainders {
  std::vector<Remainder> spans;
  /// Time between two unrecorded intervals. A span may have begun in one and ended in the other, so recorded
  /// computation counts, and the rest is unrecorded rather than idle.
  IntervalSet doubtful;
};
[[nodiscard]] Remainders remainders(const store::Store& store, std::uint32_t rank, const IntervalSet& missing,
                                    std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace shardscope::analysis
