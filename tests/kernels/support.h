// What the kernel tests share: arrays in any storage type, comparison with a stated bound, central
// differences of a double-precision reference, and a run over every instruction set this CPU has.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <sstream>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/error.h"
#include "kernels/ops.h"

namespace shardscope::kernels::test {

using Doubles = std::vector<double>;

/// As an index.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline Doubles random_doubles(std::int64_t n, unsigned seed, double low = -1.0, double high = 1.0) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  Doubles x(static_cast<std::size_t>(n));
  for (double& value : x) value = uniform(engine);
  return x;
}

/// Conversion written apart from the library's: rounds to nearest even by comparing the two neighbours.
inline std::uint16_t to_bits16(float x, DType type) {
  const int mantissa = type == DType::bf16 ? 7 : 10;
  const int lowest = type == DType::bf16 ? -126 : -14;
  const int highest = type == DType::bf16 ? 127 : 15;
  const std::uint16_t sign = std::signbit(x) ? 0x8000U : 0U;
  const auto infinity = static_cast<std::uint16_t>((2 * highest + 1) << mantissa);
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | infinity | (1U << (mantissa - 1)));
  if (std::isinf(x)) return sign | infinity;
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude == 0.0) return sign;
  int exponent = std::max(std::ilogb(magnitude), lowest);
  const double steps = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));  // ties to even
  // steps in [2^mantissa, 2^(mantissa+1)] for normal numbers; a carry moves to the next exponent by itself.
  const double bits = steps + std::ldexp(static_cast<double>(exponent - lowest), mantissa);
  if (bits >= infinity) return sign | infinity;
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(bits));
}
inline float from_bits16(std::uint16_t h, DType type) {
  const int mantissa = type == DType::bf16 ? 7 : 10;
  const int lowest = type == DType::bf16 ? -126 : -14;
  const int exponent_mask = type == DType::bf16 ? 255 : 31;
  const int exponent = (h >> mantissa) & exponent_mask;
  const int fraction = h & ((1 << mantissa) - 1);
  double value = 0.0;
  if (exponent == exponent_mask) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else {
    value = exponent == 0 ? std::ldexp(fraction, lowest - mantissa)
                          : std::ldexp((1 << mantissa) + fraction, exponent - 1 + lowest - mantissa);
  }
  return static_cast<float>((h & 0x8000) != 0 ? -value : value);
}

/// Relative rounding error of one store.
inline double unit_roundoff(DType type) {
  switch (type) {
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    case DType::i8:
      break;
  }
  return 0;
}

/// An array as a kernel sees it, at an address `shift` elements away from any alignment.
class Array {
 public:
  Array(std::int64_t n, DType type, int shift = 1)
      : n_(n),
        type_(type),
        bytes_((static_cast<std::size_t>(n) + static_cast<std::size_t>(shift) + 8) * size_of(type)),
        shift_(shift) {}
  Array(const Doubles& values, DType type, int shift = 1)
      : Array(static_cast<std::int64_t>(values.size()), type, shift) {
    for (std::int64_t i = 0; i < n_; ++i) set(i, static_cast<float>(values[static_cast<std::size_t>(i)]));
  }
  [[nodiscard]] void* data() { return bytes_.data() + static_cast<std::size_t>(shift_) * size_of(type_); }
  [[nodiscard]] const void* data() const {
    return bytes_.data() + static_cast<std::size_t>(shift_) * size_of(type_);
  }
  [[nodiscard]] Ptr ptr() { return {data(), type_}; }
  [[nodiscard]] ConstPtr view() const { return {data(), type_}; }
  operator Ptr() { return ptr(); }              // NOLINT(google-explicit-constructor)
  operator ConstPtr() const { return view(); }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] float* f32() { return static_cast<float*>(data()); }
  [[nodiscard]] const float* f32() const { return static_cast<const float*>(data()); }
  [[nodiscard]] std::int64_t size() const { return n_; }
  void set(std::int64_t i, float x) {
    if (type_ == DType::f32) {
      f32()[i] = x;
    } else {
      static_cast<std::uint16_t*>(data())[i] = to_bits16(x, type_);
    }
  }
  [[nodiscard]] double get(std::int64_t i) const {
    return type_ == DType::f32 ? f32()[i] : from_bits16(static_cast<const std::uint16_t*>(data())[i], type_);
  }
  [[nodiscard]] Doubles doubles() const {
    Doubles x(static_cast<std::size_t>(n_));
    for (std::int64_t i = 0; i < n_; ++i) x[static_cast<std::size_t>(i)] = get(i);
    return x;
  }
  [[nodiscard]] bool same_bits(const Array& other) const {
    return n_ == other.n_ && type_ == other.type_ &&
           std::memcmp(data(), other.data(), static_cast<std::size_t>(n_) * size_of(type_)) == 0;
  }

 private:
  std::int64_t n_;
  DType type_;
  std::vector<unsigned char> bytes_;
  int shift_;
};

/// Every |got - want| <= relative * |want| + absolute; NaN never passes. Reports the worst element.
inline ::testing::AssertionResult close(const Doubles& got, const Doubles& want, double relative,
                                        double absolute) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << got.size() << " elements, expected " << want.size();
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = relative * std::fabs(want[i]) + absolute;
    if (!(std::fabs(got[i] - want[i]) <= bound)) {
      return ::testing::AssertionFailure()
             << "element " << i << " is " << got[i] << ", expected " << want[i] << " within " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

/// d(loss)/d(x) by central differences in double; `loss` reads x. The error is about step^2 plus 1e-16 /
/// step.
inline Doubles central_differences(Doubles& x, const std::function<double()>& loss, double step = 1e-5) {
  Doubles gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + step;
    const double above = loss();
    x[i] = kept - step;
    const double below = loss();
    x[i] = kept;
    gradient[i] = (above - below) / (2.0 * step);
  }
  return gradient;
}

inline double dot(const Doubles& a, const Doubles& b) {
  double s = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
  return s;
}

/// Runs each test once per instruction set that this CPU has.
class OnEveryIsa : public ::testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    if (!cpu::isa_supported(GetParam())) GTEST_SKIP() << "this CPU lacks the instruction set";
    cpu::force_isa(GetParam());
  }
  void TearDown() override { cpu::force_isa(cpu::best_isa()); }
  Exec exec;
};

inline std::string isa_name(const ::testing::TestParamInfo<cpu::Isa>& info) {
  switch (info.param) {
    case cpu::Isa::baseline:
      return "baseline";
    case cpu::Isa::avx2:
      return "avx2";
    case cpu::Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

#define SHARDSCOPE_ON_EVERY_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(            \
      Isa, suite, ::testing::Values(cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512), isa_name)

inline constexpr DType kAllTypes[] = {DType::f32, DType::bf16, DType::f16};

}  // namespace shardscope::kernels::test
