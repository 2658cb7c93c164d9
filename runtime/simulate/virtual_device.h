// A device that computes nothing: its streams write what they are asked to a Recorder, its memory is
// addresses without pages, so that a rank of any size takes next to nothing here. Everything above it, the
// engine included, is the code that trains.
//
// [Note: memory that is not there]
// Device addresses are never followed: kernels run with Backend::cost and copies are metered, not made. Host
// and pinned memory is read and written by the engine itself (batches, losses, norms): small pieces are real
// and zero; large ones, which would be offloaded states, are one and the same few pages mapped again and
// again. Whatever is read there is 0, so losses and norms mean nothing and their events are not passed on.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/device/device.h"
#include "runtime/simulate/recorder.h"

namespace shardscope::simulate {

/// `recorder` outlives the device. Device memory beyond the hardware's is refused as on a real device.
[[nodiscard]] std::unique_ptr<device::Device> make_virtual_device(Recorder& recorder);

}  // namespace shardscope::simulate
