// Every CUDA call of the device layer goes through these: the error names the call and the place.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "runtime/device/error.h"

namespace shardscope::device::cuda {

inline void check(cudaError_t result, const char* call, const std::string& where) {
  if (result == cudaSuccess) return;
  throw BackendError(call, static_cast<int>(result),
                     std::string(cudaGetErrorName(result)) + ": " + cudaGetErrorString(result), where);
}

inline void check(CUresult result, const char* call, const std::string& where) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  throw BackendError(
      call, static_cast<int>(result),
      std::string(name != nullptr ? name : "unknown error") + ": " + (text != nullptr ? text : ""), where);
}

}  // namespace shardscope::device::cuda
