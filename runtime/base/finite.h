// Numbers from files that training cannot start from: one NaN in a weight or a sample is NaN everywhere after
// a step.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shardscope::base {

/// Index of the first NaN or infinity.
[[nodiscard]] inline std::optional<std::size_t> first_not_finite(std::span<const float> values) noexcept {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((std::bit_cast<std::uint32_t>(values[i]) & kExponent) == kExponent) return i;
  }
  return std::nullopt;
}

/// "nan", "inf" or "-inf".
[[nodiscard]] inline const char* not_finite_text(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x007FFFFFU) != 0) return "nan";
  return (bits >> 31) != 0 ? "-inf" : "inf";
}

}  // namespace shardscope::base
