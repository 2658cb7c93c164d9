#include "runtime/device/device.h"

#include <exception>

namespace shardscope::device {

void Device::synchronize() {
  // Every stream is waited for, even after one has failed; the first failure is what the caller sees.
  std::exception_ptr failure;
  for (Stream* stream : started_streams()) {
    try {
      stream->synchronize();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardscope::device
