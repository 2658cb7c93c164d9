// The operations of ops.h and columns.h: invalid arguments are rejected, then the backend of `exec` runs.
// dispatch.cpp has the operations of a model, dispatch_states.cpp those on parameters, gradients and
// optimizer states.
//
// Every operation has the same steps, in this order:
//   1. sizes are checked, so that a modelled run (Backend::cost) refuses what a real one would;
//   2. Backend::cost adds the operation's work to the meter and returns, before any memory is touched;
//   3. CUDA launches on the context's stream and returns (SHARDSCOPE_ON_CUDA);
//   4. the CPU computes on the calling thread. cpu_threads() also refuses an unknown backend, and is
//      called for that where the operation takes no threads.
//
// The caller must check contents, for example indices.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/ops.h"
#include "kernels/error.h"
#include "kernels/ops.h"

namespace shardscope::kernels {

#if SHARDSCOPE_HAS_CUDA
inline constexpr bool kCudaBuilt = true;
#else
inline constexpr bool kCudaBuilt = false;
#endif

/// The context to launch on, if `exec` is CUDA and this build has CUDA.
inline const cuda::Context* cuda_context(const Exec& exec, const char* kernel) {
  if (exec.backend != Backend::cuda) return nullptr;
  if (!kCudaBuilt) throw_no_cuda(kernel);
  if (exec.cuda == nullptr) throw_bad_argument(kernel, "a CUDA stream's Exec names no context");
  return exec.cuda;
}

/// Returns from the operation with cuda::call(context, ...) if `exec` is CUDA. Empty in builds without CUDA,
/// which lack these functions.
#define SHARDSCOPE_ON_CUDA(operation, ...)                                       \
  if (const cuda::Context* on = cuda_context(exec, #operation); on != nullptr) { \
    if constexpr (kCudaBuilt) return cuda::operation(*on, __VA_ARGS__);          \
  }

/// Threads of the CPU backend.
inline int cpu_threads(const Exec& exec, const char* kernel) {
  switch (exec.backend) {
    case Backend::cpu:
      if (exec.threads < 1) {
        throw_bad_argument(kernel, "threads is " + std::to_string(exec.threads) + "; it must be at least 1");
      }
      return exec.threads;
    case Backend::cuda:
    case Backend::cost:  // metered before a backend is chosen
      break;
  }
  throw_bad_argument(kernel, "unknown backend " + std::to_string(static_cast<int>(exec.backend)));
}

// Work is counted in double: products of four sizes may not fit 64 bits.
inline double real(std::int64_t count) noexcept { return static_cast<double>(count); }

// `least`: 0 for numbers of rows or elements, which may be 0; 1 for widths.
inline void check_size(const char* kernel, const char* name, std::int64_t value, std::int64_t least = 0) {
  if (value < least) {
    throw_bad_argument(kernel, std::string(name) + " is " + std::to_string(value) + "; it must be at least " +
                                   std::to_string(least));
  }
}

// For kernels compiled for one type of all their tensors.
inline void check_same_type(const char* kernel, DType a, DType b) {
  if (a != b) throw_bad_argument(kernel, "its tensors must share one element type");
}

}  // namespace shardscope::kernels
