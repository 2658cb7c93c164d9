// Intervals in which the user held a rank at a gate: excluded from every duration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::store {

/// Depth value for the pauses of all depths of a rank's host lane, for Store::for_each_span() and
/// spans(). Pauses are always in memory: nothing is read for them.
inline constexpr std::uint8_t kPauses = 254;

/// Whether a pause makes a span of this kind longer. Work already queued on a stream runs on
/// during the pause, and nothing is submitted meanwhile: collectives, copies and kernels are as long
/// as without it.
[[nodiscard]] constexpr bool stretched_by_pauses(instrumentation::EventKind begin) noexcept {
  using instrumentation::EventKind;
  return begin != EventKind::collective_begin && begin != EventKind::transfer_begin &&
         begin != EventKind::kernel_begin && begin != EventKind::gpu_begin &&
         begin != EventKind::paused_begin;
}

/// The length of a pause, nanoseconds, which the store writes into a slot that paused_end has no field for:
/// from it Pauses and the table of steps have the interval without the begin.
inline void set_pause_length(instrumentation::Event& end, std::int64_t ns) noexcept { end.v0 = ns; }
[[nodiscard]] inline std::int64_t pause_length(const instrumentation::Event& end) noexcept { return end.v0; }

class Pauses {
 public:
  struct Pause {
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  /// Pauses must be added in order of time.
  void add(std::int64_t begin_ns, std::int64_t end_ns) {
    if (!list_.empty()) begin_ns = std::max(begin_ns, list_.back().end_ns);
    if (end_ns > begin_ns) list_.push_back({begin_ns, end_ns});
  }
  /// Adds the pauses that ended among these events (RankState::notable()).
  void add_of(std::span<const instrumentation::Event> notable) {
    for (const instrumentation::Event& event : notable) {
      if (event.kind != instrumentation::EventKind::paused_end) continue;
      const auto end_ns = static_cast<std::int64_t>(event.ticks);
      add(end_ns - pause_length(event), end_ns);
    }
  }
  /// Pauses that overlap [begin, end).
  [[nodiscard]] std::span<const Pause> overlapping(std::int64_t begin_ns, std::int64_t end_ns) const {
    const auto first = std::partition_point(list_.begin(), list_.end(),
                                            [&](const Pause& pause) { return pause.end_ns <= begin_ns; });
    const auto last =
        std::partition_point(first, list_.end(), [&](const Pause& pause) { return pause.begin_ns < end_ns; });
    return {first, last};
  }
  /// Paused time within [begin, end).
  [[nodiscard]] std::int64_t within(std::int64_t begin_ns, std::int64_t end_ns) const {
    std::int64_t sum = 0;
    for (const Pause& pause : overlapping(begin_ns, end_ns)) {
      sum += std::min(pause.end_ns, end_ns) - std::max(pause.begin_ns, begin_ns);
    }
    return sum;
  }
  /// Removes pauses that ended by `ns`, when no later query needs them.
  void forget_before(std::int64_t ns) {
    std::erase_if(list_, [ns](const Pause& pause) { return pause.end_ns <= ns; });
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return list_.capacity() * sizeof(Pause); }

 private:
  std::vector<Pause> list_;  ///< disjoint, ascending
};

}  // namespace shardscope::store
