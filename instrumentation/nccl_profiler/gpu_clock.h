// The GPU's globaltimer against the host's monotonic clock, from what NCCL reports: each report arrives after
// the GPU time in it, so the smallest offset seen lately is the best estimate. It is too large by the
// shortest delay of a report, which cannot be measured here: durations are exact on the GPU's clock, their
// place on the host's is not.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

namespace shardscope::nccl_profiler {

class GpuClock {
 public:
  /// Any thread: the GPU's time `gpu_ns` was reported at the host's `host_ns`.
  void observe(std::uint64_t gpu_ns, std::int64_t host_ns) noexcept {
    const std::int64_t offset = host_ns - static_cast<std::int64_t>(gpu_ns);
    std::int64_t least = current_.load(std::memory_order_relaxed);
    while (offset < least && !current_.compare_exchange_weak(least, offset, std::memory_order_relaxed)) {
    }
  }
  /// One thread, about once a second: the clocks drift apart, so what was seen two turns ago is dropped,
  /// unless nothing was seen since.
  void turn() noexcept {
    const std::int64_t seen = current_.exchange(kNone, std::memory_order_relaxed);
    if (seen != kNone) previous_.store(seen, std::memory_order_relaxed);
  }
  /// Host time of a GPU time; none before the first observation.
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
