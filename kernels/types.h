// Types that all kernels share: element types (dtype.h), pointers and execution contexts.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"

namespace shardscope::kernels {

/// cost: nothing is computed and no memory is accessed; the kernel's work is added to a WorkMeter (cost.h).
/// cuda: a build without CUDA rejects it (KernelError).
enum class Backend : std::uint8_t { cpu, cuda, cost };

namespace cuda {
class Context;  // kernels/cuda/context.h
}
class WorkMeter;  // kernels/cost.h

/// Where a kernel runs. On the CPU a kernel runs to completion on the calling thread (a stream's worker); on
/// CUDA it is launched on the stream of `cuda` and returns at once. Kernels never allocate: scratch memory is
/// an argument whose size a `*_scratch_bytes` function returns.
struct Exec {
  Backend backend = Backend::cpu;
  const cuda::Context* cuda = nullptr;  ///< CUDA: stream, workspace and handles
  WorkMeter* meter = nullptr;           ///< cost: sums up the work
  int threads = 1;                      ///< CPU: worker threads a kernel may use
};

/// A typed pointer to contiguous memory; each function documents shape and layout.
struct Ptr {
  void* data = nullptr;
  DType type = DType::f32;
};
struct ConstPtr {
  const void* data = nullptr;
  DType type = DType::f32;
  ConstPtr() = default;
  ConstPtr(const void* d, DType t) : data(d), type(t) {}
  ConstPtr(Ptr p) : data(p.data), type(p.type) {}  // NOLINT(google-explicit-constructor): a Ptr reads too
};

}  // namespace shardscope::kernels
