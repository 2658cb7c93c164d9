// Whole numbers rounded up, and the elements of a shape.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::plan {

/// Smallest whole number not below value / by; for value >= 0, by > 0.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) noexcept {
  return (value + by - 1) / by;
}

/// Smallest multiple of `unit` not below `value`; for value >= 0, unit > 0.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) noexcept {
  return ceil_div(value, unit) * unit;
}

/// Elements of a tensor; 1 for the shape of a scalar.
[[nodiscard]] inline std::int64_t elems_of_shape(const std::vector<std::int64_t>& shape) noexcept {
  std::int64_t elems = 1;
  for (const std::int64_t extent : shape) elems *= extent;
  return elems;
}

}  // namespace shardscope::plan
