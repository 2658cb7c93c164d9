// Merges the events of several rings into one sequence in order of time.
//
// [Note: holding back]
// An event is timestamped a moment before it is published, and the scheduler may stop a thread in between. So
// drained events are not complete up to the time of draining: the newest few milliseconds are held back until
// the next round. A later event (a thread stopped for longer, GPU events) is sent in the batch of its
// arrival, with its true timestamp; the collector sorts once more within a chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "instrumentation/clock.h"
#include "instrumentation/event.h"

namespace shardscope::instrumentation {

class TimeMerge {
 public:
  /// Takes drained events, ring after ring (`run_begins`: index of each ring's first), and converts their
  /// timestamps to nanoseconds, in place.
  void add(std::vector<Event>& drained, const std::vector<std::size_t>& run_begins, const TickClock& clock);
  /// Returns all events up to `until_ns`, in order of time, in the memory of `buffer`; keeps the rest.
  [[nodiscard]] std::vector<Event> take(std::int64_t until_ns, std::vector<Event> buffer = {});
  [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }

 private:
  /// A sequence of events in order of time.
  struct Run {
    const Event* next;
    const Event* end;
  };
  std::vector<Event> held_;  ///< in order of time
  // Buffers of add(), members to reuse their memory.
  std::vector<Event> merged_;
  std::vector<Run> runs_;
};

}  // namespace shardscope::instrumentation
