// Simulated clock of another host, with an offset and a drift relative to this machine's.
#pragma once

#include <cstdint>

namespace shardscope::instrumentation {

struct HostClock {
  std::int64_t skew_ns = 0;
  double drift_ppm = 0;        ///< microseconds gained per second
  std::int64_t origin_ns = 0;  ///< this machine's monotonic time at which the offset is only the skew

  /// Its time when this machine's monotonic clock shows `monotonic_ns`.
  [[nodiscard]] std::int64_t at(std::int64_t monotonic_ns) const noexcept {
    return monotonic_ns + skew_ns +
           static_cast<std::int64_t>(drift_ppm * 1e-6 * static_cast<double>(monotonic_ns - origin_ns));
  }
};

}  // namespace shardscope::instrumentation
