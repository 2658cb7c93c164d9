#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Quantize = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Quantize);

struct Groups {
  std::int64_t n, group;
  [[nodiscard]] std::int64_t count() const { return (n + group - 1) / group; }
};
constexpr Groups kShapes[] = {{2, 2}, {64, 8}, {1000, 250}, {1000, 300}, {5000, 2500}, {37 * 2, 10}};

/// The definition, in double.
struct QuantizedReference {
  std::vector<int> values;
  Doubles scales;
  QuantizedReference(const Doubles& x, std::int64_t group, double levels) {
    for (std::size_t begin = 0; begin < x.size(); begin += static_cast<std::size_t>(group)) {
      const std::size_t end = std::min(x.size(), begin + static_cast<std::size_t>(group));
      double largest = 0;
      for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
      scales.push_back(largest / levels);
      for (std::size_t i = begin; i < end; ++i) {
        values.push_back(scales.back() == 0 ? 0 : static_cast<int>(std::nearbyint(x[i] / scales.back())));
      }
    }
  }
};

int low(std::uint8_t byte) { return static_cast<int>(byte & 0xFU) - ((byte & 0x8U) != 0 ? 16 : 0); }
int high(std::uint8_t byte) { return low(static_cast<std::uint8_t>(byte >> 4)); }
int int4_at(const std::vector<std::uint8_t>& values, std::int64_t i) {
  const std::uint8_t byte = values[static_cast<std::size_t>(i / 2)];
  return i % 2 == 0 ? low(byte) : high(byte);
}

TEST_P(Quantize, Int8FollowsTheDefinitionAndComesBackWithinHalfAStep) {
  for (const Groups& shape : kShapes) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(shape.n, 3, -5, 5), type);
      const QuantizedReference want(x.doubles(), shape.group, 127);
      std::vector<std::int8_t> values(static_cast<std::size_t>(shape.n));
      std::vector<float> scales(static_cast<std::size_t>(shape.count()));
      quantize_int8(exec, values.data(), scales.data(), x, shape.n, shape.group);
      Array back(shape.n, type);
      dequantize_int8(exec, back, values.data(), scales.data(), shape.n, shape.group);
      for (std::int64_t i = 0; i < shape.n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double scale = want.scales[at / static_cast<std::size_t>(shape.group)];
        ASSERT_NEAR(scales[at / static_cast<std::size_t>(shape.group)], scale, scale * 1e-6);
        // x / scale is made as x * (1 / scale) in fp32: a value half way between two may go either way.
        ASSERT_LE(std::abs(values[at] - want.values[at]), 1) << i;
        if (values[at] != want.values[at]) {
          ASSERT_NEAR(std::fabs(x.get(i) / scale - want.values[at]), 0.5, 1e-4);
        }
        // Half a step, and the rounding of storage at the end.
        ASSERT_LE(std::fabs(back.get(i) - x.get(i)),
                  0.5 * scale * (1 + 1e-4) + unit_roundoff(type) * std::fabs(x.get(i)) * 1.01)
            << i;
      }
    }
  }
}

TEST_P(Quantize, Int4FollowsTheDefinition) {
  for (const Groups& shape : kShapes) {
    if (shape.group % 2 != 0) continue;
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(shape.n, 4, -3, 3), type);
      const QuantizedReference want(x.doubles(), shape.group, 7);
      std::vector<std::uint8_t> values(static_cast<std::size_t>(shape.n / 2));
      std::vector<float> scales(static_cast<std::size_t>(shape.count()));
      quantize_int4(exec, values.data(), scales.data(), x, shape.n, shape.group);
      Array back(shape.n, DType::f32);
      const Int4Source source{values.data(), scales.data()};
      dequantize_sum_int4(exec, back, &source, 1, shape.n, shape.group, 1);
      for (std::int64_t i = 0; i < shape.n; ++i) {
        const double scale = want.scales[static_cast<std::size_t>(i / shape.group)];
        const int got = int4_at(values, i);
        ASSERT_LE(std::abs(got - want.values[static_cast<std::size_t>(i)]), 1);
        ASSERT_LE(std::fabs(back.get(i) - x.get(i)), 0.5 * scale * (1 + 1e-4)) << i;
        ASSERT_NEAR(back.get(i), got * scale, 1e-5 * scale);
      }
    }
  }
}

TEST_P(Quantize, SumsAreTakenInOrderAndRoundedAgain) {
  const Groups shape{3000, 1100};
  constexpr std::uint32_t kCount = 3;
  std::vector<std::vector<std::uint8_t>> values(kCount, std::vector<std::uint8_t>(1500));
  std::vector<std::vector<float>> scales(kCount, std::vector<float>(3));
  std::vector<Int4Source> sources;
  Doubles sum(3000, 0.0);
  for (std::uint32_t k = 0; k < kCount; ++k) {
    const Array x(random_doubles(shape.n, 10 + k, -1, 1), DType::f32);
    quantize_int4(exec, values[k].data(), scales[k].data(), x, shape.n, shape.group);
    sources.push_back({values[k].data(), scales[k].data()});
    for (std::int64_t i = 0; i < shape.n; ++i) {
      sum[static_cast<std::size_t>(i)] +=
          0.25 * int4_at(values[k], i) *
          static_cast<double>(scales[k][static_cast<std::size_t>(i / shape.group)]);
    }
  }
  for (const DType type : kAllTypes) {
    Array total(shape.n, type);
    dequantize_sum_int4(exec, total, sources.data(), kCount, shape.n, shape.group, 0.25F);
    EXPECT_TRUE(close(total.doubles(), sum, 1e-6, 1.01 * unit_roundoff(type) + 1e-6));
  }
  std::vector<std::uint8_t> again(1500);
  std::vector<float> again_scales(3);
  requantize_int4(exec, again.data(), again_scales.data(), sources.data(), kCount, shape.n, shape.group,
                  0.25F);
  const QuantizedReference want(sum, shape.group, 7);
  for (std::int64_t i = 0; i < shape.n; ++i) {
    const double scale = want.scales[static_cast<std::size_t>(i / shape.group)];
    ASSERT_NEAR(
        int4_at(again, i) * static_cast<double>(again_scales[static_cast<std::size_t>(i / shape.group)]),
        sum[static_cast<std::size_t>(i)], 0.5 * scale * (1 + 1e-4));
  }
}

// LoCo: h = x + e is rounded, then e <- beta e + (1 - beta) (h - q).
TEST_P(Quantize, ErrorsAreFedBack) {
  const Groups shape{600, 250};
  std::vector<std::int8_t> error_values(600, 0);
  std::vector<float> error_scales(3, 0.0F);
  Doubles error(600, 0.0);
  Doubles sum_x(600, 0.0), sum_q(600, 0.0), sum_plain(600, 0.0);
  const Array x(random_doubles(shape.n, 5, -2, 2), DType::f32);  // the same gradient again and again
  for (int step = 0; step < 50; ++step) {
    std::vector<std::uint8_t> values(300);
    std::vector<float> scales(3);
    quantize_int4(exec, values.data(), scales.data(), x, shape.n, shape.group,
                  {error_values.data(), error_scales.data(), 0.8F});
    for (std::int64_t i = 0; i < shape.n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto group = static_cast<std::size_t>(i / shape.group);
      const double h = x.get(i) + error[at];
      const double q = int4_at(values, i) * static_cast<double>(scales[group]);
      ASSERT_LE(std::fabs(h - q), 0.5 * static_cast<double>(scales[group]) * 1.001) << step;
      const double next = 0.8 * error[at] + 0.2 * (h - q);
      const double kept = error_values[at] * static_cast<double>(error_scales[group]);
      // The error itself is stored in 8 bits: half a step of that.
      ASSERT_NEAR(kept, next, 0.5 * static_cast<double>(error_scales[group]) * 1.001 + 1e-7);
      error[at] = kept;
      sum_x[at] += x.get(i);
      sum_q[at] += q;
    }
    quantize_int4(exec, values.data(), scales.data(), x, shape.n, shape.group);
    for (std::int64_t i = 0; i < shape.n; ++i) {
      sum_plain[static_cast<std::size_t>(i)] +=
          int4_at(values, i) * static_cast<double>(scales[static_cast<std::size_t>(i / shape.group)]);
    }
  }
  double fed = 0, plain = 0;
  for (std::size_t i = 0; i < sum_x.size(); ++i) {
    fed += std::fabs(sum_q[i] - sum_x[i]);
    plain += std::fabs(sum_plain[i] - sum_x[i]);
  }
  EXPECT_LT(fed, plain) << "what is lost must come back";
}

TEST_P(Quantize, ZerosStayAndBadValuesShow) {
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    Array x(random_doubles(40, 6), DType::f32);
    for (std::int64_t i = 0; i < 10; ++i) x.set(i, 0);
    x.set(25, bad);
    std::vector<std::int8_t> bytes(40);
    std::vector<std::uint8_t> nibbles(20);
    std::vector<float> scales(4);
    Array back(40, DType::f32);
    quantize_int8(exec, bytes.data(), scales.data(), x, 40, 10);
    dequantize_int8(exec, back, bytes.data(), scales.data(), 40, 10);
    for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(back.get(i), 0);
    for (std::int64_t i = 20; i < 30; ++i) EXPECT_FALSE(std::isfinite(back.get(i)));
    for (std::int64_t i = 30; i < 40; ++i) EXPECT_TRUE(std::isfinite(back.get(i)));
    std::vector<std::int8_t> error(40, 3);
    std::vector<float> error_scales(4, 0.01F);
    quantize_int4(exec, nibbles.data(), scales.data(), x, 40, 10, {error.data(), error_scales.data(), 0.8F});
    const Int4Source source{nibbles.data(), scales.data()};
    dequantize_sum_int4(exec, back, &source, 1, 40, 10, 1);
    for (std::int64_t i = 20; i < 30; ++i) EXPECT_FALSE(std::isfinite(back.get(i)));
    EXPECT_EQ(error_scales[2], 0) << "the error of a group that was not finite is forgotten";
    EXPECT_GT(error_scales[1], 0);
  }
}

TEST_P(Quantize, OddCountsOfInt4AreRefused) {
  std::uint8_t value = 0;
  float scale = 0;
  const float x[3] = {1, 2, 3};
  EXPECT_THROW(quantize_int4(exec, &value, &scale, {x, DType::f32}, 3, 2), KernelError);
  EXPECT_THROW(quantize_int4(exec, &value, &scale, {x, DType::f32}, 2, 1), KernelError);
  EXPECT_THROW(quantize_int8(exec, reinterpret_cast<std::int8_t*>(&value), &scale, {x, DType::f32}, 2, 0),
               KernelError);
}

}  // namespace
}  // namespace shardscope::kernels::test
