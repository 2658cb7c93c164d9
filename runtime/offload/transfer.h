// Copies between the device and the host on the copy stream, each with its events.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/events.h"

namespace shardscope::offload {

/// Parameter or sub-group of a transfer; kNoId if it has no single one.
struct TransferLabel {
  std::uint32_t param = instrumentation::kNoId;
  std::uint32_t group = instrumentation::kNoId;
};

/// Queues a copy on the device's copy stream, between transfer_begin and transfer_end.
inline void transfer(device::Device& device, instrumentation::TransferKind kind, void* to, const void* from,
                     std::size_t bytes, TransferLabel label) {
  if (bytes == 0) return;
  const instrumentation::Fields<instrumentation::EventKind::transfer_begin> fields{
      .transfer = kind,
      .param = label.param,
      .sub_group = label.group,
      .queue_depth = 1,
      .bytes = static_cast<std::int64_t>(bytes)};
  execution::emit_on<instrumentation::EventKind::transfer_begin>(device.copy(), fields);
  device.copy_async(to, from, bytes, device.copy());
  execution::emit_end_on<instrumentation::EventKind::transfer_begin>(device.copy(), fields);
}

/// The host pool selected by `pin_memory`.
[[nodiscard]] inline device::Arena& host_pool(device::Device& device, bool pin_memory) {
  return pin_memory ? device.pinned() : device.host();
}

}  // namespace shardscope::offload
