// Losses of micro-steps or evaluation batches: written on the device one by one, read on the host with one
// copy.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/device/device.h"

namespace shardscope::engine {

class LossValues {
 public:
  /// fp32 [count] on the device and in pinned memory; both are used on the compute stream.
  LossValues(device::Device& device, std::size_t count)
      : device_(device),
        count_(count),
        on_device_(device.memory().allocate(bytes(), kTag, device.compute())),
        on_host_(device.pinned().allocate(bytes(), kTag, device.compute())) {}

  /// On the device; where the kernel of the i-th loss writes it.
  [[nodiscard]] float* at(std::size_t i) { return static_cast<float*>(on_device_.data()) + i; }
  /// Queues the copy of all of them behind what the compute stream has.
  void queue_copy() { device_.copy_async(on_host_.data(), on_device_.data(), bytes(), device_.compute()); }
  /// On the host, after the compute stream was waited for behind queue_copy(); until the next one.
  [[nodiscard]] std::span<const float> values() const {
    return {static_cast<const float*>(on_host_.data()), count_};
  }

 private:
  static constexpr device::MemoryTag kTag{instrumentation::MemoryCategory::temporary, instrumentation::kNoId};
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(float); }

  device::Device& device_;
  std::size_t count_;
  device::Buffer on_device_, on_host_;
};

}  // namespace shardscope::engine
