// Keeps the host from running far ahead of the device: what the host emits (decisions, memory, gates) then
// carries nearly the time at which it takes effect, and queued work stays bounded.
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

  /// A module's work is queued. Lets the compute stream be at most `depth` modules behind: when it is more,
  /// waits until it is half of that, for to be woken after every module would cost both threads a switch each
  /// time.
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
