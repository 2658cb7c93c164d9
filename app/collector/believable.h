#pragma once

#include <cstdint>

namespace shardscope::collector {

/// A clock reading in nanoseconds is within this of zero: far from where sums of a few overflow.
constexpr std::int64_t kBelievable = std::int64_t{1} << 60;

[[nodiscard]] constexpr bool believable(std::int64_t reading) noexcept {
  return reading > -kBelievable && reading < kBelievable;
}

}  // namespace shardscope::collector
