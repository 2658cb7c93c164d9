// Model states measured against the stage's expression (metrics.md 1 and 2.8).
#pragma once

#include <cstdint>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// Bytes of model states in a sample. For stage 3 gathered parameters are transient copies, an extra
/// that is shown beside the model states, not a part of them; below stage 3 they are the resident copy.
[[nodiscard]] std::int64_t model_state_bytes(const store::MemorySample& sample, std::int32_t stage);

/// The expression for the run's data types, per rank: parameters and gradients as stored, fp32 master
/// weights only where they are kept beside 16-bit ones, momentum and variance in fp32.
[[nodiscard]] MemoryModel model_memory(const store::Store& store, const Summary& summary);

}  // namespace shardscope::analysis
