#include "kernels/error.h"

namespace shardscope::kernels {

void throw_no_cuda(const char* kernel) {
  throw KernelError(std::string(kernel) +
                    ": this build has no CUDA kernels; run with --device cpu, or configure with "
                    "-DSHARDSCOPE_CUDA=ON where a CUDA compiler is installed");
}

void throw_bad_argument(const char* kernel, const std::string& what) {
  throw KernelError(std::string(kernel) + ": " + what);
}

}  // namespace shardscope::kernels
