// Measured model states against the formula of the stage (metrics.md 1 and 2.8).
#pragma once

#include <cstdint>
#include <optional>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// The formula per rank for the run's data types: parameters and gradients as stored, fp32 master
/// weights only where they are kept beside 16-bit ones, momentum and variance in fp32.
[[nodiscard]] MemoryModel model_memory(const store::Store& store, const Summary& summary);

/// The peak of a rank's model states in `pool`, with all categories at that time. nullopt without memory
/// events, and if at any earlier time events are missing or were recorded at too low a level: later sums lack
/// the allocations of that time. In that case `in_part`, if given, is set.
[[nodiscard]] std::optional<store::MemorySample> measured_model_states(const store::Store& store,
                                                                       std::uint32_t rank,
                                                                       instrumentation::MemoryPool pool,
                                                                       bool* in_part = nullptr);

/// The contents of a rank's pool at its peak in [begin, end), exact, including what was allocated before.
[[nodiscard]] store::MemorySample highest_memory(const store::Store& store, std::uint32_t rank,
                                                 instrumentation::MemoryPool pool, std::int64_t begin_ns,
                                                 std::int64_t end_ns);

struct DevicePeak {
  const RankSummary* rank = nullptr;
  const store::MemorySample* sample = nullptr;  ///< at the peak of its device
};
/// The rank with the largest device peak, the first of equal ones; nullopt if no rank recorded one. Points
/// into `summary`.
[[nodiscard]] std::optional<DevicePeak> largest_device_peak(const Summary& summary);
/// largest_device_peak() in MiB.
[[nodiscard]] std::optional<double> device_peak_mib(const Summary& summary);
/// The rank with the most outside memory, the first of equal ones; null if none was sampled. Points into
/// `summary`.
[[nodiscard]] const RankSummary* most_outside(const Summary& summary);

}  // namespace shardscope::analysis
