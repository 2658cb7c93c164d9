#include "kernels/cuda/context.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/check.h"
#include "kernels/cuda/products.h"

namespace shardscope::kernels::cuda {

Context::Context(void* stream, void* workspace)
    : stream_(stream), workspace_(workspace), products_(std::make_unique<Products>()) {
  int device = 0;
  int shared = 0;
  check(cudaGetDevice(&device), "context", "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "context",
        "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "context",
        "cudaDeviceGetAttribute");
  shared_bytes_limit_ = static_cast<std::size_t>(shared);
  int capability = 0;
  check(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device), "context",
        "cudaDeviceGetAttribute");
  gelu_in_products_ = capability == 9 || capability == 10;
}

Context::~Context() = default;

}  // namespace shardscope::kernels::cuda
