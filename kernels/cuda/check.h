// Error checks of every CUDA and cuBLASLt call of the kernels.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

#include "kernels/error.h"

namespace shardscope::kernels::cuda {

inline void check(cudaError_t result, const char* kernel, const char* call) {
  if (result == cudaSuccess) return;
  throw_bad_argument(kernel,
                     std::string(call) + ": " + cudaGetErrorName(result) + ": " + cudaGetErrorString(result));
}
inline void check(cublasStatus_t result, const char* kernel, const char* call) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  throw_bad_argument(kernel, std::string(call) + ": " + cublasLtGetStatusName(result) + ": " +
                                 cublasLtGetStatusString(result));
}

/// Call after a launch: throws if its arguments were rejected, or if an earlier kernel of this context
/// failed. Does not wait: errors during the kernel are reported by a later call. The error stays set (peek),
/// so that later calls see it too.
inline void check_launch(const char* kernel) { check(cudaPeekAtLastError(), kernel, "launch"); }

}  // namespace shardscope::kernels::cuda
