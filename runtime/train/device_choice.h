// --device: which device a rank computes on, and how its collectives travel.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/comm/world.h"
#include "runtime/device/device.h"

namespace shardscope::train {

/// `text`: "cpu", "cuda" (ranks of a node take its GPUs in turn, several on one where there are fewer) or
/// "cuda:N". Communicators of `copy`, the ranks of `world` that train one copy of the model, made afterwards
/// are for its memory. Collective over the world. Throws std::invalid_argument for another text and
/// BackendError where there is no such device. The device outlives the communicators.
[[nodiscard]] std::unique_ptr<device::Device> open_device(const std::string& text, comm::World& world,
                                                          comm::World& copy,
                                                          std::chrono::milliseconds timeout);

}  // namespace shardscope::train
