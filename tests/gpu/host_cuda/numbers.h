// Numbers in memory as the libraries of host_cuda read and write them: of the project's floating-point types.
#pragma once

#include <cstdint>

#include "kernels/types.h"
#include "tests/gpu/host_cuda/device_code.h"

namespace shardscope::host_cuda {

inline float load(const void* at, kernels::DType type, std::int64_t i) {
  if (type == kernels::DType::f32) return static_cast<const float*>(at)[i];
  if (type == kernels::DType::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(at)[i]);
  return __half2float(static_cast<const __half*>(at)[i]);
}
inline void store(void* at, kernels::DType type, std::int64_t i, float x) {
  if (type == kernels::DType::f32) {
    static_cast<float*>(at)[i] = x;
  } else if (type == kernels::DType::bf16) {
    static_cast<__nv_bfloat16*>(at)[i] = __float2bfloat16_rn(x);
  } else {
    static_cast<__half*>(at)[i] = __float2half_rn(x);
  }
}
/// As it is read back.
inline float rounded(kernels::DType type, float x) {
  float kept = 0;
  store(&kept, type, 0, x);
  return load(&kept, type, 0);
}

}  // namespace shardscope::host_cuda
