// Every CUDA call of the device layer goes through these: the error contains the call and the place.
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

/// Whether the device has reached `event`; throws the device's error. CUDA keeps "not ready" as the thread's
/// last error, which the check after the next launch would attribute to the launch: it is cleared.
[[nodiscard]] inline bool reached(cudaEvent_t event, const std::string& where) {
  const cudaError_t result = cudaEventQuery(event);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(result, "cudaEventQuery", where);
  return true;
}

}  // namespace shardscope::device::cuda
