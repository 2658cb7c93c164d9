// cuDNN's functions used by the kernels. Loaded on first use, so that programs run without cuDNN as long as
// no kernel needs it.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <string>

namespace shardscope::kernels::cuda {

struct CudnnLibrary {
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnGetErrorString) error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) last_error = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;

  /// Throws KernelError with cuDNN's error text, for the call `call` in `kernel`.
  void check(cudnnStatus_t result, const char* kernel, const char* call) const;
  /// cuDNN's text for the last failed call of this thread; may be empty.
  [[nodiscard]] std::string last_error_text() const;
};

/// Throws KernelError for a version that computes wrong gradients: before 9.6 the caller had to clear the
/// sums of dq (NVIDIA's frontend, scaled_dot_product_flash_attention.h, dQ_accum).
void check_cudnn_version(std::size_t version, const char* kernel);

/// Throws KernelError with the missing library or function.
[[nodiscard]] const CudnnLibrary& cudnn_library(const char* kernel);

}  // namespace shardscope::kernels::cuda
