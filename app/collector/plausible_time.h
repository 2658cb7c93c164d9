#pragma once

#include <cstdint>

namespace shardscope::collector {

/// A clock reading in nanoseconds is within this of zero: far from where sums of a few overflow.
constexpr std::int64_t kPlausibleTime_ns = std::int64_t{1} << 60;

[[nodiscard]] constexpr bool plausible_time(std::int64_t reading) noexcept {
  return reading > -kPlausibleTime_ns && reading < kPlausibleTime_ns;
}

}  // namespace shardscope::collector
