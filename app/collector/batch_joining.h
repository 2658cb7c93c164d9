// Batches of a rank that wait at its node's collector, as one: when that may be done without saying less.
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

/// Of one batch.
inline constexpr std::size_t kMostJoinedEvents = instrumentation::kBatchEvents;
/// Gaps that are further apart stay apart: between them what the rank did is known.
inline constexpr std::int64_t kSameGap_ns = 1'000'000;

/// Whether `next`, which follows `batch` in the same queue, may become a part of it. What is missing lies
/// before a batch's events: so a `next` with something missing before it stays apart, unless it goes on with
/// the gap that `batch` has, of what the queue shed.
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
