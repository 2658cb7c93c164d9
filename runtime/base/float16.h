// Conversions between fp32 and the 16-bit types of files, rounding to nearest even. Kernels have their own,
// vectorised; these serve files only.
#pragma once

#include <bit>
#include <cstdint>

namespace shardscope::base {

[[nodiscard]] constexpr float from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard]] constexpr std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // quiet nan
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

[[nodiscard]] constexpr float from_f16(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // subnormal: exact
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

[[nodiscard]] constexpr std::uint16_t to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);   // nan
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65536 and more
  if (magnitude < 0x38800000U) {
    // Below 2^-14: a subnormal is a multiple of 2^-24. Adding 0.5 aligns that bit with fp32's last one, and
    // the addition itself rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3F000000U));
  }
  // Rounding may carry into the exponent, up to infinity, which is correct.
  const std::uint32_t rounded = magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

}  // namespace shardscope::base
