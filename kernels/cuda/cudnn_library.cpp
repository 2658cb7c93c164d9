#include "kernels/cuda/cudnn_library.h"

#include "kernels/error.h"

namespace shardscope::kernels::cuda {

void CudnnLibrary::check(cudnnStatus_t result, const char* kernel, const char* call) const {
  if (result == CUDNN_STATUS_SUCCESS) return;
  const std::string more = last_error_text();
  throw_bad_argument(kernel,
                     std::string(call) + ": " + error_string(result) + (more.empty() ? "" : ": " + more));
}

std::string CudnnLibrary::last_error_text() const {
  char text[512] = "";
  last_error(text, sizeof text);
  return text;
}

void check_cudnn_version(std::size_t version, const char* kernel) {
  // major * 10000 + minor * 100 + patch, as returned by cudnnGetVersion() since version 9.
  constexpr std::size_t kOldest = 90600;
  if (version >= kOldest) return;
  throw_bad_argument(kernel, "cuDNN " + std::to_string(version / 10000) + "." +
                                 std::to_string(version / 100 % 100) +
                                 " was found: install 9.6 or newer, or leave SHARDSCOPE_ATTENTION unset");
}

}  // namespace shardscope::kernels::cuda
