// The GPU's globaltimer relative to the host's monotonic clock, from NCCL's reports: each report arrives
// after the GPU time in it, so the smallest recent offset is the best estimate. It is too large by the
// shortest delay of a report, which cannot be measured here: durations are exact on the GPU's clock, their
// position on the host's is not.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

namespace shardscope::nccl_profiler {

class GpuClock {
 public:
  /// From any thread: GPU time `gpu_ns` was reported at host time `host_ns`.
  void observe(std::uint64_t gpu_ns, std::int64_t host_ns) noexcept {
    const std::int64_t offset = host_ns - static_cast<std::int64_t>(gpu_ns);
    std::int64_t least = current_.load(std::memory_order_relaxed);
    while (offset < least && !current_.compare_exchange_weak(least, offset, std::memory_order_relaxed)) {
    }
  }
  /// From one thread, about once a second: the clocks drift, so observations older than two turns are
  /// dropped, unless there are no newer ones.
  void turn() noexcept {
    const std::int64_t seen = current_.exchange(kNone, std::memory_order_relaxed);
    if (seen != kNone) previous_.store(seen, std::memory_order_relaxed);
  }
  /// Host time of a GPU time; nullopt before the first observation.
  [[nodiscard]] std::optional<std::int64_t> host_ns(std::uint64_t gpu_ns) const noexcept {
    const std::int64_t offset =
        std::min(current_.load(std::memory_order_relaxed), previous_.load(std::memory_order_relaxed));
    if (offset == kNone) return std::nullopt;
    return static_cast<std::int64_t>(gpu_ns) + offset;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> current_{kNone};
  std::atomic<std::int64_t> previous_{kNone};
};

}  // namespace shardscope::nccl_profiler
