#include "runtime/device/device.h"

#include <exception>

namespace shardscope::device {

void Device::synchronize() {
  // Waits for every stream, even after one has failed; rethrows the first failure.
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
