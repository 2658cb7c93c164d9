#include "tests/gpu/gpu.h"

namespace shardscope::gpu {

DeviceArray::DeviceArray(device::Device& device, std::size_t bytes)
    : device_(device),
      buffer_(device.memory().allocate(std::max<std::size_t>(bytes, 1), {}, device.compute())) {}

DeviceArray::DeviceArray(device::Device& device, const void* from, std::size_t bytes)
    : DeviceArray(device, bytes) {
  device.copy_async(buffer_.data(), from, bytes, device.compute());
  device.compute().synchronize();
}

void DeviceArray::read(void* to) const {
  device_.copy_async(to, buffer_.data(), buffer_.bytes(), device_.compute());
  device_.compute().synchronize();
}

}  // namespace shardscope::gpu
