// Joins batches of a rank that wait in the queue of its node's collector, where no information is lost by it.
// Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "instrumentation/rank_link.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

namespace wire = instrumentation::wire;

/// Upper bound of events in one joined batch.
inline constexpr std::size_t kMostJoinedEvents = instrumentation::kBatchEvents;
/// Gaps further apart than this are not merged: the rank's events between them are complete.
inline constexpr std::int64_t kSameGap_ns = 1'000'000;

/// Whether `next`, which follows `batch` in the same queue, may be appended to it. Missing events lie before
/// a batch's events, so a `next` with missing events before it stays separate, unless these continue the
/// gap of events that the queue shed before `batch`.
[[nodiscard]] inline bool may_join(const wire::Batch& batch, const wire::Batch& next) noexcept {
  if (!batch.relay || !next.relay || batch.events.empty() || next.events.empty() ||
      batch.events.size() + next.events.size() > kMostJoinedEvents)
    return false;
  const wire::Relay &a = *batch.relay, &b = *next.relay;
  if (a.source_incarnation != b.source_incarnation || a.source_last + 1 != b.source_first ||
      a.source_dropped_total != b.source_dropped_total || a.lost_total != b.lost_total)
    return false;
  return next.dropped_here == 0 || (batch.dropped_here != 0 && next.begin_ns < batch.end_ns + kSameGap_ns);
}

/// Appends `next` to `batch`; only where may_join().
inline void join(wire::Batch& batch, wire::Batch&& next) {
  if (next.dropped_here != 0) {
    batch.dropped_here += next.dropped_here;
    batch.begin_ns = std::min(batch.begin_ns, next.begin_ns);
    batch.end_ns = std::max(batch.end_ns, next.end_ns);
  }
  batch.dropped_total = std::max(batch.dropped_total, next.dropped_total);
  batch.clock_ns = next.clock_ns;
  batch.clock_realtime_ns = next.clock_realtime_ns;
  batch.clock_error_ns = std::max(batch.clock_error_ns, next.clock_error_ns);
  const std::uint64_t first = batch.relay->source_first;
  batch.relay = next.relay;
  batch.relay->source_first = first;
  batch.events.insert(batch.events.end(), next.events.begin(), next.events.end());
}

}  // namespace shardscope::collector
