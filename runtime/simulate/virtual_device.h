// A device that computes nothing: its streams write their operations to a Recorder, its memory is addresses
// without pages, so that a rank of any size needs almost no memory. Everything above it, the engine included,
// is the code used in training.
//
// [Note: memory that is not there]
// Device addresses are never dereferenced: kernels run with Backend::cost and copies are metered, not made.
// Host and pinned memory is read and written by the engine itself (batches, losses, norms): small allocations
// are real and zero; large ones, which would be offloaded states, map the same few pages repeatedly. All
// values read are 0, so losses and norms are meaningless and their events are dropped.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/device/device.h"
#include "runtime/simulate/recorder.h"

namespace shardscope::simulate {

/// `recorder` must outlive the device. Allocations beyond the hardware's memory fail as on a real device.
[[nodiscard]] std::unique_ptr<device::Device> make_virtual_device(Recorder& recorder);

}  // namespace shardscope::simulate
