// --device: the device that a rank computes on, and the transport of its collectives.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/comm/world.h"
#include "runtime/device/device.h"

namespace shardscope::train {

/// `text`: "cpu", "cuda" (ranks of a node are assigned to its GPUs round-robin) or "cuda:N". Communicators of
/// `copy`, the ranks of `world` that train one copy of the model, made afterwards work on its memory.
/// Collective over the world. Throws std::invalid_argument for another text and BackendError if there is no
/// such device. The device must outlive the communicators.
[[nodiscard]] std::unique_ptr<device::Device> open_device(const std::string& text, comm::World& world,
                                                          comm::World& copy,
                                                          std::chrono::milliseconds timeout);

}  // namespace shardscope::train
