// What a bucket is in memory and how many reductions may be outstanding. The engine, the memory estimate and
// the window all use these functions. See [Note: gradients in flight] and [Note: gradients as DeepSpeed holds
// them] in runtime/engine/gradients.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/overlap.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Each gradient has its own allocation from its backward to its reduction; else all are in one flat buffer.
[[nodiscard]] inline bool gradients_are_apart(const ZeroConfig& zero) noexcept {
  return zero.stage >= 2 || (holds_gradient_buffers(zero) && !uses_legacy_layout(zero));
}

/// A bucket is a buffer of reduce_bucket_size elements into which gradients are copied; else a list of them.
[[nodiscard]] inline bool buckets_are_buffers(const ZeroConfig& zero) noexcept {
  return holds_gradient_buffers(zero) && zero.contiguous_gradients && !uses_legacy_layout(zero);
}

/// The step copies a rank's owned gradients, sub-group by sub-group, into sums of the optimizer's type and
/// frees the 16-bit ones (S9). ZenFlow reads the owned gradients in place.
[[nodiscard]] inline bool copies_gradients_at_step(const ZeroConfig& zero) noexcept {
  return holds_gradient_buffers(zero) && !zero.zenflow;
}

/// Number of bucket buffers allocated where buckets are buffers. DeepSpeed's stage 3 has one with either
/// value of overlap_comm.
[[nodiscard]] inline std::uint32_t allocated_bucket_buffers(const ZeroConfig& zero) noexcept {
  return zero.stage == 3 ? 1 : bucket_buffers(zero.overlap(), true);
}

/// C6: the host waits for a reduction instead of the compute stream, as in DeepSpeed's stage 3.
[[nodiscard]] inline bool reductions_hold_host(const ZeroConfig& zero) noexcept {
  return zero.stage == 3 && zero.compat.max_param_reduce_events > 0;
}

/// Reductions that may be outstanding when another is issued: one more is afterwards. nullopt: no limit.
[[nodiscard]] inline std::optional<std::size_t> outstanding_reductions(const ZeroConfig& zero) noexcept {
  // The next bucket fills the buffer of the previous reduction, or the only buffer.
  if (buckets_are_buffers(zero)) return 0;
  return reductions_hold_host(zero) ? max_ongoing(zero.compat.max_param_reduce_events) : 1;
}

}  // namespace shardscope::plan
