// What the GPU tests share: a fixture that skips where there is no GPU, and arrays on the device.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/device.h"

namespace shardscope::gpu {

/// Skips its tests where there is no CUDA device.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    // Where a GPU is expected (tests/gpu/run.sh) its absence is an error, which make_cuda_device reports.
    if (device::cuda_device_count() == 0 && std::getenv("SHARDSCOPE_NEEDS_GPU") == nullptr)
      GTEST_SKIP() << "no CUDA device";
    device = device::make_cuda_device({});
  }
  std::unique_ptr<device::Device> device;
};

/// Bytes on the device, filled from and read to the host; waits for the compute stream.
class DeviceArray {
 public:
  DeviceArray(device::Device& device, std::size_t bytes);
  DeviceArray(device::Device& device, const void* from, std::size_t bytes);
  [[nodiscard]] void* data() const { return buffer_.data(); }
  /// `bytes` from `offset` on.
  void read(void* to, std::size_t offset, std::size_t bytes) const;

 private:
  device::Device& device_;
  device::Buffer buffer_;
};

}  // namespace shardscope::gpu
