// Which memory categories are model states: one rule for the store's peaks, the memory model and the
// window.
#pragma once

#include <cstdint>

#include "app/store/store_rows.h"

namespace shardscope::store {

/// Parameters, gradients, master weights, momentum, variance and secondary shards (metrics.md section 1).
/// Gathered parameters only below stage 3, where they are the resident copy.
[[nodiscard]] bool is_model_state(ev::MemoryCategory category, std::int32_t stage) noexcept;
/// Bytes of the model states in a sample.
[[nodiscard]] std::int64_t model_state_bytes(const MemorySample& sample, std::int32_t stage) noexcept;

}  // namespace shardscope::store
