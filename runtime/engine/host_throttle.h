// Keeps the host from running far ahead of the device: timestamps of host events (decisions, memory, gates)
// are then close to the time at which they take effect, and queued work is bounded.
#pragma once

#include <deque>
#include <memory>

#include "runtime/execution/event_pool.h"

namespace shardscope::engine {

class HostThrottle {
 public:
  HostThrottle(device::Device& device, execution::EventPool& events)
      : device_(device),
        events_(events),
        // Launching on CUDA costs microseconds per kernel: a deeper queue hides it.
        depth_(device.backend() == kernels::Backend::cpu ? 4 : 32) {}

  /// Call after a module's work is queued. If the compute stream is more than `depth` modules behind, waits
  /// until it is half of that behind: a wake-up after every module would cost both threads a context switch.
  void module_queued() {
    marks_.push_back(events_.take());
    device_.compute().record(*marks_.back());
    if (marks_.size() <= depth_) return;
    marks_[marks_.size() - 1 - depth_ / 2]->host_wait();
    while (marks_.size() > depth_ / 2) {
      events_.give_back(std::move(marks_.front()));
      marks_.pop_front();
    }
  }

 private:
  device::Device& device_;
  execution::EventPool& events_;
  std::size_t depth_;
  std::deque<std::unique_ptr<device::Event>> marks_;
};

}  // namespace shardscope::engine
