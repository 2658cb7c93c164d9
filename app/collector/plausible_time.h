#pragma once

#include <cstdint>

namespace shardscope::collector {

/// Upper bound on a clock reading's absolute value, in nanoseconds: sums of a few cannot overflow.
constexpr std::int64_t kPlausibleTime_ns = std::int64_t{1} << 60;

[[nodiscard]] constexpr bool plausible_time(std::int64_t reading) noexcept {
  return reading > -kPlausibleTime_ns && reading < kPlausibleTime_ns;
}

}  // namespace shardscope::collector
