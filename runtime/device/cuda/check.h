// Every CUDA call of the device layer goes through these: the error names the call and the place.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runtime/device/error.h"

namespace shardscope::device::cuda {

inline void check(cudaError_t result, const char* call, const std::string& where) {
  if (result == cudaSuccess) return;
  throw BackendError(call, static_cast<int>(result),
                     std::string(cudaGetErrorName(result)) + ": " + cudaGetErrorString(result), where);
}

}  // namespace shardscope::device::cuda
