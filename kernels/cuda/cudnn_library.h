// cuDNN's functions that the kernels call. Loaded on first use, so that programs run
// without cuDNN as long as no kernel selects it.
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
  /// cuDNN's text about the last call of this thread that failed; may be empty.
  [[nodiscard]] std::string last_error_text() const;
};

/// Throws KernelError for a version that would compute wrong gradients: before 9.6 the sums of dq had to be
/// cleared by the caller (NVIDIA's frontend, scaled_dot_product_flash_attention.h, dQ_accum).
void check_cudnn_version(std::size_t version, const char* kernel);

/// Throws KernelError naming what is missing.
[[nodiscard]] const CudnnLibrary& cudnn_library(const char* kernel);

}  // namespace shardscope::kernels::cuda
