// What a kernel throws when it cannot do what it was asked: a missing backend or arguments that make no
// sense.
#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::kernels {

/// Says which kernel, what was wrong with which value, and what to do.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws KernelError: this build holds no CUDA kernels.
[[noreturn]] void throw_no_cuda(const char* kernel);

/// Throws KernelError "<kernel>: <what>".
[[noreturn]] void throw_bad_argument(const char* kernel, const std::string& what);

}  // namespace shardscope::kernels
