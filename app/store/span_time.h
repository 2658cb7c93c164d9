// Duration of spans, steps and intervals, as far as it is known: pauses are excluded, and what has not ended
// is marked as open. Every duration that is shown or summed is computed here.
#pragma once

#include <cstdint>
#include <string>

#include "app/store/pauses.h"
#include "app/store/store.h"

namespace shardscope::store {

/// The time up to which a rank is known to have run: the run's latest event while it is connected; else its
/// own last one, as for every rank of a recording.
[[nodiscard]] std::int64_t known_until(const StoreQuery& store, std::uint32_t rank);
/// Time within [begin, end) in which the rank was held at a gate, including a pause that lasts.
[[nodiscard]] std::int64_t paused_ns(const Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                     std::int64_t end_ns);

struct SpanTime {
  bool ended = true;
  bool still_running = false;   ///< it has not ended and its rank is running: the duration may grow
  std::int64_t until_ns = 0;    ///< its end; where it has not ended, the time up to which it is known
  std::int64_t running_ns = 0;  ///< up to `until_ns`, without pauses
  std::int64_t paused_ns = 0;
};
[[nodiscard]] SpanTime time_of(const Store& store, std::uint32_t rank, const Span& span);
/// The same for the part of a span in [begin, end).
[[nodiscard]] SpanTime time_within(const Store& store, std::uint32_t rank, const Span& span,
                                   std::int64_t begin_ns, std::int64_t end_ns);
/// Duration of a step over all ranks; where it has not ended, up to the latest event.
[[nodiscard]] SpanTime time_of(const Store& store, const StepRow& step);
/// Duration of an interval of the run, as of a step: paused_ns is that of the rank paused the longest.
[[nodiscard]] SpanTime time_between(const Store& store, std::int64_t begin_ns, std::int64_t end_ns);

/// Whether more events of a rank may arrive. Where it has ended, was killed or its recording ends,
/// open spans stay open, and their durations are not "so far".
[[nodiscard]] bool still_running(const Store& store, std::uint32_t rank);
/// Why the end of a rank's open span is unknown: "still open", "rank 1 was killed by signal 9 (SIGKILL) at
/// 1.234 s", "no events of rank 1 after 1.234 s".
[[nodiscard]] std::string why_open(const Store& store, std::uint32_t rank);

}  // namespace shardscope::store
