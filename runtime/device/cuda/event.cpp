#include "runtime/device/cuda/event.h"

#include <utility>

#include "runtime/device/cuda/check.h"

namespace shardscope::device::cuda {

EventPool::EventPool(unsigned flags, std::string where) : flags_(flags), where_(std::move(where)) {}

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

EventPool::Handle EventPool::take() {
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
    }
  }
  if (event == nullptr) check(cudaEventCreateWithFlags(&event, flags_), "cudaEventCreateWithFlags", where_);
  return {event, [pool = shared_from_this()](cudaEvent_t used) { pool->give_back(used); }};
}

void EventPool::give_back(cudaEvent_t event) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  } catch (...) {
    cudaEventDestroy(event);
  }
}

bool CudaPoint::reached() const { return cuda::reached(event(), where_); }

void CudaPoint::host_wait() const {
  // A stream's worker thread has no device yet: without this its first call would open a context on GPU 0.
  thread_local int current = -1;
  if (current != device_) {
    check(cudaSetDevice(device_), "cudaSetDevice", where_);
    current = device_;
  }
  check(cudaEventSynchronize(event()), "cudaEventSynchronize", where_);
}

}  // namespace shardscope::device::cuda
