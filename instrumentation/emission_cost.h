// What observing costs a rank, said by the rank itself at the end of its run: measured, not assumed.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::instrumentation {

/// How the text of emission_cost_text() begins; reports show it by that.
inline constexpr const char* kEmissionCostPrefix = "cost of profiling: ";

/// Nanoseconds of one push into a ring with its time stamp, on this machine: the shortest of several bursts
/// into a ring of its own, on the calling thread, in about a tenth of a millisecond. Waits for nobody and
/// nobody waits for it.
[[nodiscard]] double calibrated_event_ns();

struct EmissionCost {
  std::uint64_t events = 0;  ///< emitted by all threads of the rank
  double event_ns = 0;       ///< of calibrated_event_ns()
  std::int64_t elapsed_ns = 0;
  std::int64_t publisher_cpu_ns = 0;  ///< of the thread that drains, orders and encodes
};
/// "cost of profiling: 152590 events x 12.4 ns = 1.9 ms of the emitting threads, 0.006 % of 31.2 s; ...".
[[nodiscard]] std::string emission_cost_text(const EmissionCost& cost);

/// CPU time of the calling thread.
[[nodiscard]] std::int64_t thread_cpu_ns() noexcept;

}  // namespace shardscope::instrumentation
