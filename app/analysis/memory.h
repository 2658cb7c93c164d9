// Model states measured against the stage's expression (metrics.md 1 and 2.8).
#pragma once

#include <cstdint>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// The expression for the run's data types, per rank: parameters and gradients as stored, fp32 master
/// weights only where they are kept beside 16-bit ones, momentum and variance in fp32.
[[nodiscard]] MemoryModel model_memory(const store::Store& store, const Summary& summary);

}  // namespace shardscope::analysis
