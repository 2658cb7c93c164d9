// Exception of a kernel that cannot execute a call: missing backend or invalid
// arguments.
#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::kernels {

/// Its message has the kernel, the invalid value, the reason, and what to do.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws KernelError: this build has no CUDA kernels.
[[noreturn]] void throw_no_cuda(const char* kernel);

/// Throws KernelError "<kernel>: <what>".
[[noreturn]] void throw_bad_argument(const char* kernel, const std::string& what);

}  // namespace shardscope::kernels
