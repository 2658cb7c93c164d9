// Model states measured against the stage's expression (metrics.md 1 and 2.8).
#pragma once

#include <cstdint>
#include <optional>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// The expression for the run's data types, per rank: parameters and gradients as stored, fp32 master
/// weights only where they are kept beside 16-bit ones, momentum and variance in fp32.
[[nodiscard]] MemoryModel model_memory(const store::Store& store, const Summary& summary);

/// Most that the rank's model states held in `pool`, with all categories at that time. Nothing where there
/// are no memory events, or where events are missing or less than they take was recorded at any time before:
/// what was allocated or freed then is in no sum after it, which `in_part`, where given, says.
[[nodiscard]] std::optional<store::MemorySample> measured_model_states(const store::Store& store,
                                                                       std::uint32_t rank,
                                                                       instrumentation::MemoryPool pool,
                                                                       bool* in_part = nullptr);

/// What the pool of a rank held when it held most in [begin, end), exactly, with what was held at its begin.
[[nodiscard]] store::MemorySample highest_memory(const store::Store& store, std::uint32_t rank,
                                                 instrumentation::MemoryPool pool, std::int64_t begin_ns,
                                                 std::int64_t end_ns);

struct DevicePeak {
  const RankSummary* rank = nullptr;
  const store::MemorySample* sample = nullptr;  ///< when its device held most
};
/// Of the rank whose device held most, of several the first; nothing where no rank recorded it. Points into
/// `summary`.
[[nodiscard]] std::optional<DevicePeak> largest_device_peak(const Summary& summary);
/// The same in MiB.
[[nodiscard]] std::optional<double> device_peak_mib(const Summary& summary);
/// The rank with the most outside memory, of several the first; null where none was sampled. Points into
/// `summary`.
[[nodiscard]] const RankSummary* most_outside(const Summary& summary);

}  // namespace shardscope::analysis
