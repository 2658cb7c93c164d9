// How long something took, as far as that is known: what was paused is not counted, and what has not ended is
// said to be open. Every duration that is shown or summed comes from here.
#pragma once

#include <cstdint>
#include <string>

#include "app/store/pauses.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Up to when a rank is known to have run: the run's latest event while it is connected; else its own last
/// one, as of every rank of a recording.
[[nodiscard]] std::int64_t known_until(const Store& store, std::uint32_t rank);
/// How much of [begin, end) the rank was held at a gate, the pause that goes on included.
[[nodiscard]] std::int64_t paused_ns(const Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                     std::int64_t end_ns);

struct SpanTime {
  bool ended = true;
  bool goes_on = false;         ///< it has not ended and its rank runs: it may last longer than said here
  std::int64_t until_ns = 0;    ///< its end; of one that has not ended, how far it is known to have gone on
  std::int64_t running_ns = 0;  ///< up to then, pauses cut out
  std::int64_t paused_ns = 0;
};
[[nodiscard]] SpanTime time_of(const Store& store, std::uint32_t rank, const Span& span);
/// The same for the part of a span that lies in [begin, end).
[[nodiscard]] SpanTime time_within(const Store& store, std::uint32_t rank, const Span& span,
                                   std::int64_t begin_ns, std::int64_t end_ns);
/// Time of a step over all ranks; up to what is known, where it has not ended.
[[nodiscard]] SpanTime time_of(const Store& store, const StepRow& step);
/// Time of a stretch of the run, as of a step: paused is how long the rank held longest was held in it.
[[nodiscard]] SpanTime time_between(const Store& store, std::int64_t begin_ns, std::int64_t end_ns);

/// Whether more of a rank may come: of one that has ended, was killed or stands in a recording that ends,
/// what is open stays as it is, and nothing of it is "so far".
[[nodiscard]] bool goes_on(const Store& store, std::uint32_t rank);
/// Why the end of a rank's open span is not known: "still open", "rank 1 was killed by signal 9 (SIGKILL) at
/// 1.234 s", "no events of rank 1 after 1.234 s".
[[nodiscard]] std::string why_open(const Store& store, std::uint32_t rank);

}  // namespace shardscope::store
