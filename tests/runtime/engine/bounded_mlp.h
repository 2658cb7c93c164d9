// A multilayer perceptron trained in double precision, with a bound of what any order of sums in a given
// number format may differ from it by: the stated bounds of the engine's runs.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {

/// A real number and how far the computed one may be from it. Each operation below carries the errors of its
/// operands exactly (no first-order approximation), so a bound needs no factor for safety:
///   (a+-ea) + (b+-eb): ea + eb       (a+-ea) * (b+-eb): |a| eb + |b| ea + ea eb
/// and rounded() adds what storing the result adds.
struct Bounded {
  double value = 0, error = 0;
  [[nodiscard]] double magnitude() const { return std::abs(value) + error; }
};
inline Bounded operator+(Bounded a, Bounded b) { return {a.value + b.value, a.error + b.error}; }
inline Bounded operator-(Bounded a, Bounded b) { return {a.value - b.value, a.error + b.error}; }
inline Bounded operator*(Bounded a, Bounded b) {
  return {a.value * b.value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error};
}

/// Round to nearest in a format of p significant bits errs by at most 2^-p of the value, or by half the
/// spacing of subnormal numbers.
struct NumberFormat {
  double unit, tiny;
};
inline constexpr NumberFormat kFp32{0x1p-24, 0x1p-150};
inline constexpr NumberFormat kBf16{0x1p-8, 0x1p-134};
inline constexpr NumberFormat kFp16{0x1p-11, 0x1p-25};
[[nodiscard]] inline Bounded rounded(Bounded x, NumberFormat format) {
  return {x.value, x.error + format.unit * x.magnitude() + format.tiny};
}

struct BoundedRun {
  std::vector<std::vector<std::vector<Bounded>>> losses;  ///< [rank][step][micro-step]
  std::vector<std::vector<Bounded>> weights;              ///< by ParamId
};

/// Trains `spec.model`, linear layers with a ReLU between each two and a mean squared error, as the engine
/// does with parameters and gradients in `format`, sums in fp32 and master weights in fp32. The optimizer is
/// Adam without momentum, betas 0 and eps 1: w -= lr g / (|g| + 1), whose slope in g is at most lr, so that
/// an error of a gradient is never made larger.
[[nodiscard]] BoundedRun train_bounded(const RunSpec& spec, NumberFormat format, double lr,
                                       double loss_scale);

}  // namespace shardscope::engine::testing
