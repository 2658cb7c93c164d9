// Which stretches of a rank's time lack events: dropped, shed, lost, damaged, or not emitted at the detail
// that was set. What the rank did there is unknown: it counts neither as computing nor as idle.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/analysis/spans.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// When events up to level `needed` are missing within [begin, end). Says nothing of a level that was never
/// recorded: of that there are no events at all.
[[nodiscard]] IntervalSet unrecorded(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                     std::int64_t end_ns, ev::Detail needed);

/// What is known of the recording of a rank within [begin, end).
struct Recorded {
  bool events_missing = false;       ///< dropped, shed, lost or damaged
  std::optional<ev::Detail> lowest;  ///< detail; nothing where it was never changed in the run
  [[nodiscard]] bool whole(ev::Detail needed) const noexcept {
    return !events_missing && (!lowest || *lowest >= needed);
  }
};
[[nodiscard]] Recorded recorded_in(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                   std::int64_t end_ns);

/// The recorded part of a span that ended in [begin, end) and overlaps `missing`.
struct Remainder {
  ev::StreamId stream{};
  ev::EventKind begin{};  ///< kind
  Interval interval;      ///< it was open at least here
};
struct Remainders {
  std::vector<Remainder> spans;
  /// Time between two unrecorded stretches. A span may have begun in one and ended in the other, so recorded
  /// computation there counts, and what is left is unrecorded instead of idle.
  IntervalSet doubtful;
};
[[nodiscard]] Remainders remainders(const store::Store& store, std::uint32_t rank, const IntervalSet& missing,
                                    std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace shardscope::analysis
