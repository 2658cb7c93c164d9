// Range check of timestamps from outside.
#pragma once

#include <cstdint>

namespace shardscope::instrumentation {

/// Times beyond 2^62 ns (146 years) would overflow once clock offsets are added or differences taken.
[[nodiscard]] constexpr bool is_time(std::int64_t ns) noexcept {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 62;
  return ns > -kBeyond && ns < kBeyond;
}

}  // namespace shardscope::instrumentation
