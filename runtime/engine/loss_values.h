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

  /// Device address of the i-th loss.
  [[nodiscard]] float* at(std::size_t i) { return static_cast<float*>(on_device_.data()) + i; }
  /// Queues the copy of all losses to the host on the compute stream.
  void queue_copy() { device_.copy_async(on_host_.data(), on_device_.data(), bytes(), device_.compute()); }
  /// Host values; valid after waiting for the compute stream, until the next queue_copy().
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
