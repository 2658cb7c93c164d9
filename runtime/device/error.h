// Failure of a backend call (CUDA, NCCL, MPI, the operating system): thrown inside a layer, turned into
// an exit code and a final event only in main.
#pragma once

#include <stdexcept>
#include <string>

namespace shardscope {

class BackendError : public std::runtime_error {
 public:
  BackendError(std::string call, int code, std::string text, std::string where);
  [[nodiscard]] const std::string& call() const noexcept { return call_; }
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  std::string call_;
  int code_;
};

}  // namespace shardscope
