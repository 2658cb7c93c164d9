// The 64-bit hash of the recorded DeepSpeed runs (tests/golden/losses.json, "hash"; splitmix64's finaliser),
// used for generated data and weights, and for shuffling.
#pragma once

#include <cstdint>

namespace shardscope::base {

[[nodiscard]] constexpr std::uint64_t hash64(std::uint64_t x) noexcept {
  std::uint64_t z = x + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// U(s, i): uniform in [-1, 1), a multiple of 2^-23, so exact in fp32.
[[nodiscard]] constexpr double uniform(std::uint64_t stream, std::uint64_t index) noexcept {
  const auto bits = static_cast<std::int64_t>(hash64((stream << 32) + index) >> 40);
  return static_cast<double>(bits - (std::int64_t{1} << 23)) / static_cast<double>(std::int64_t{1} << 23);
}

}  // namespace shardscope::base
