// Device memory outside the runtime's arenas, over time: queried from the driver between steps, at most a few
// times a second. The query does not synchronize.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/device/device.h"
#include "runtime/execution/events.h"

namespace shardscope::engine {

class OutsideMemory {
 public:
  /// Emits outside_memory if the period has elapsed; nothing on a device that cannot report its memory.
  /// `device` must be the calling thread's current device.
  void sample(device::Device& device, std::chrono::steady_clock::time_point now) {
    if (!ev::enabled(ev::detail_of(ev::EventKind::outside_memory))) return;
    if (last_ && now - *last_ < kPeriod) return;
    last_ = now;
    const std::optional<std::size_t> outside = device.outside_bytes();
    if (!outside) return;
    execution::emit_host<ev::EventKind::outside_memory>(
        {.pool = ev::MemoryPool::device,
         .bytes = static_cast<std::int64_t>(*outside),
         .bytes_in_use = static_cast<std::int64_t>(*outside + device.memory().reserved_bytes())});
  }

 private:
  static constexpr std::chrono::milliseconds kPeriod{250};
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace shardscope::engine
