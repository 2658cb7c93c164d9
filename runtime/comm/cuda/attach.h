// Collectives over the memory of a CUDA device.
#pragma once

#include <cstdint>

#include "runtime/comm/world.h"
#include "runtime/device/device.h"

namespace shardscope::comm {

enum class DeviceTransport : std::uint8_t {
  automatic,  ///< NCCL, unless several ranks share a GPU
  nccl,
  staged,  ///< through host memory: any number of ranks on a GPU, results as on the CPU
};

/// Communicators of `world` made from now on work on the memory of `device`, a CUDA device with ordinal
/// `ordinal`. Collective over the world. The device must outlive the world's communicators. The world's
/// region (World::region) is used for staging, which pins as much of it as the largest collective of each
/// stream needs; the device's arenas do not count it. Throws BackendError.
void attach_cuda(World& world, device::Device& device, int ordinal, DeviceTransport which,
                 std::chrono::milliseconds timeout);

}  // namespace shardscope::comm
