// Buffers of fp32 states.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/device.h"
#include "runtime/execution/context.h"

namespace shardscope::offload {

/// Bytes of n floats.
[[nodiscard]] inline std::size_t floats(std::int64_t n) noexcept {
  return execution::bytes_of(n, kernels::DType::f32);
}
[[nodiscard]] inline float* data(const device::Buffer& buffer) noexcept {
  return static_cast<float*>(buffer.data());
}

}  // namespace shardscope::offload
