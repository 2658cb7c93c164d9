#include "tests/gpu/gpu.h"

namespace shardscope::gpu {
namespace {

// Before CUDA starts: ranks that are threads share the process's queues, and one that waits in a queue would
// hold up another rank's work behind it.
[[maybe_unused]] const int g_connections = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);

}  // namespace

DeviceArray::DeviceArray(device::Device& device, std::size_t bytes)
    : device_(device),
      buffer_(device.memory().allocate(std::max<std::size_t>(bytes, 1), {}, device.compute())) {}

DeviceArray::DeviceArray(device::Device& device, const void* from, std::size_t bytes)
    : DeviceArray(device, bytes) {
  device.copy_async(buffer_.data(), from, bytes, device.compute());
  device.compute().synchronize();
}

void DeviceArray::read(void* to, std::size_t offset, std::size_t bytes) const {
  device_.copy_async(to, static_cast<const std::byte*>(buffer_.data()) + offset, bytes, device_.compute());
  device_.compute().synchronize();
}

}  // namespace shardscope::gpu
