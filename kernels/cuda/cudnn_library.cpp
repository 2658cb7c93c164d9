#include "kernels/cuda/cudnn_library.h"

#include "kernels/error.h"

namespace shardscope::kernels::cuda {

void CudnnLibrary::check(cudnnStatus_t result, const char* kernel, const char* call) const {
  if (result == CUDNN_STATUS_SUCCESS) return;
  const std::string more = last_words();
  throw_bad_argument(kernel,
                     std::string(call) + ": " + error_string(result) + (more.empty() ? "" : ": " + more));
}

std::string CudnnLibrary::last_words() const {
  char text[512] = "";
  last_error(text, sizeof text);
  return text;
}

}  // namespace shardscope::kernels::cuda
