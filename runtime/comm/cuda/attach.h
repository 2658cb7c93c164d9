// Collectives of a CUDA device's memory.
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

/// Makes every communicator of `world` from now on one for the memory of `device`, which must be a CUDA
/// device with ordinal `ordinal`. Collective over the world. The device outlives the world's communicators,
/// and the world's own memory (World::region) is used for staging, which pins as much of it as the largest
/// collective of each stream needs; that is not in the figures of the device's arenas. Throws BackendError.
void attach_cuda(World& world, device::Device& device, int ordinal, DeviceTransport which,
                 std::chrono::milliseconds timeout);

}  // namespace shardscope::comm
