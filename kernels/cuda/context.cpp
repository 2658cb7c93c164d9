#include "kernels/cuda/context.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/products.h"

namespace shardscope::kernels::cuda {
namespace {

// Throws KernelError for other values: a misspelt one must not select the default.
Context::Attention chosen_attention() {
  const char* const value = std::getenv("SHARDSCOPE_ATTENTION");
  const std::string chosen = value == nullptr ? "" : value;
  if (chosen.empty() || chosen == "own") return Context::Attention::own;
  if (chosen == "cudnn") return Context::Attention::cudnn;
  throw_bad_argument("attention", "SHARDSCOPE_ATTENTION is \"" + chosen + "\"; it may be own or cudnn");
}

}  // namespace

Context::Context(void* stream, void* workspace)
    : stream_(stream),
      workspace_(workspace),
      products_(std::make_unique<Products>()),
      attention_(chosen_attention()) {
  int device = 0;
  int shared = 0;
  // The current device, on which the stream was made.
  check(cudaGetDevice(&device), "context", "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "context",
        "cudaDeviceGetAttribute");
  // Shared memory that a block may have if its kernel enabled it (cudaFuncSetAttribute).
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "context",
        "cudaDeviceGetAttribute");
  shared_bytes_limit_ = static_cast<std::size_t>(shared);
  int capability = 0;
  check(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device), "context",
        "cudaDeviceGetAttribute");
  gelu_in_products_ = capability == 9 || capability == 10;
}

Context::~Context() = default;

Context::CudnnAttention& Context::cudnn_attention() const {
  // On first use, so that a run without cuDNN's attention never loads it.
  if (cudnn_attention_ == nullptr) cudnn_attention_ = std::make_unique<CudnnAttention>(stream_);
  return *cudnn_attention_;
}

}  // namespace shardscope::kernels::cuda
