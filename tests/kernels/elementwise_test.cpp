#include <array>

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Elementwise = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Elementwise);

constexpr std::array<std::int64_t, 7> kSizes{1, 3, 7, 17, 30, 1024, 2053};

double gelu(double u) {
  return 0.5 * u * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (u + 0.044715 * u * u * u)));
}

TEST_P(Elementwise, EveryHalfValueSurvivesTheWayToFloatAndBack) {
  for (const DType type : {DType::bf16, DType::f16}) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(all.size());
    std::vector<std::uint16_t> back(all.size());
    cast(exec, {wide.data(), DType::f32}, {all.data(), type}, 65536);
    cast(exec, {back.data(), type}, {wide.data(), DType::f32}, 65536);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float want = from_bits16(all[i], type);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        ASSERT_TRUE(std::isnan(from_bits16(back[i], type))) << i;
      } else {
        ASSERT_EQ(wide[i], want) << i;
        ASSERT_EQ(back[i], all[i]);
      }
    }
  }
}

TEST_P(Elementwise, CastRoundsToNearestEven) {
  // Random bit patterns reach subnormals, overflow and both infinities; the last are ties.
  std::mt19937 engine(3);
  std::vector<float> x(100003);
  for (float& value : x) {
    const auto bits = static_cast<std::uint32_t>(engine());
    std::memcpy(&value, &bits, 4);
  }
  for (std::size_t i = 0; i < 40000; ++i) {
    int ignored = 0;
    x[i] = std::ldexp(std::isfinite(x[i]) ? std::frexp(x[i], &ignored) : 1.0F, static_cast<int>(i % 44) - 27);
  }
  for (const float tie : {1.0F + 0x1p-8F, 1.0F + 0x1.8p-7F, 1.0F + 0x1p-11F, 1.0F + 0x1.8p-10F, 65520.0F,
                          65519.0F, 0x1p-25F, 0x1.8p-24F, -0.0F, 3.4028235e38F, HUGE_VALF}) {
    x.push_back(tie);
  }
  for (const DType type : {DType::bf16, DType::f16}) {
    std::vector<std::uint16_t> y(x.size());
    cast(exec, {y.data(), type}, {x.data(), DType::f32}, static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(from_bits16(y[i], type)));
      } else {
        ASSERT_EQ(y[i], to_bits16(x[i], type)) << x[i];
      }
    }
  }
}

TEST_P(Elementwise, GeluForward) {
  for (const std::int64_t n : kSizes) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(n, 1, -8, 8), type);
      Array y(n, type);
      gelu_forward(exec, y, x, n);
      Doubles want = x.doubles();
      for (double& u : want) u = gelu(u);
      // 8 roundings of fp32 (the exponential's argument is large where the result is small), then the store's
      // own; f16 results below 2^-14 are subnormal with steps of 2^-24.
      EXPECT_TRUE(close(y.doubles(), want, 1.1 * unit_roundoff(type) + 4e-6, 0x1p-25)) << n;
    }
  }
}

TEST_P(Elementwise, GeluBackwardAgainstCentralDifferences) {
  for (const DType type : kAllTypes) {
    const std::int64_t n = 301;
    const Array x(random_doubles(n, 2, -6, 6), type);
    const Array dy(random_doubles(n, 3), type);
    Array dx(n, type);
    gelu_backward(exec, dx, dy, x, n);
    Doubles point = x.doubles();
    const Doubles weight = dy.doubles();
    Doubles want(point.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
      want[i] = weight[i] * (gelu(point[i] + 1e-5) - gelu(point[i] - 1e-5)) / 2e-5;
    }
    EXPECT_TRUE(close(dx.doubles(), want, 1.1 * unit_roundoff(type) + 1e-5, 1e-6));
  }
}

TEST_P(Elementwise, GeluFarOutAndNotANumber) {
  const Array x({-1e30, -60.0, -12.5, 0.0, 12.5, 60.0, 1e30, std::nan("")}, DType::f32);
  const Array one({1, 1, 1, 1, 1, 1, 1, 1}, DType::f32);
  Array y(8, DType::f32);
  Array dx(8, DType::f32);
  gelu_forward(exec, y, x, 8);
  gelu_backward(exec, dx, one, x, 8);
  Doubles got = y.doubles();
  Doubles slope = dx.doubles();
  EXPECT_TRUE(std::isnan(got.back()));
  EXPECT_TRUE(std::isnan(slope.back()));
  got.pop_back();
  slope.pop_back();
  EXPECT_TRUE(close(got, {0, 0, 0, 0, 12.5, 60.0, static_cast<double>(1e30F)}, 1e-6, 1e-20));
  EXPECT_TRUE(close(slope, {0, 0, 0, 0.5, 1, 1, 1}, 1e-6, 1e-20));
}

TEST_P(Elementwise, ReluAndItsGradient) {
  for (const std::int64_t n : kSizes) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(n, 4), type);
      const Array dy(random_doubles(n, 5), type);
      Array y(n, type);
      Array dx(n, type);
      relu_forward(exec, y, x, n);
      relu_backward(exec, dx, dy, x, n);
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y.get(i), x.get(i) > 0 ? x.get(i) : 0.0);
        ASSERT_EQ(dx.get(i), x.get(i) > 0 ? dy.get(i) : 0.0);
      }
    }
  }
}

TEST_P(Elementwise, AddAccumulateAndScaleRoundOnce) {
  for (const std::int64_t n : kSizes) {
    for (const DType type : kAllTypes) {
      const Array a(random_doubles(n, 6), type);
      const Array b(random_doubles(n, 7), DType::f32);
      Array y(n, type);
      add(exec, y, a, b, n);
      Array in_place = a;
      accumulate(exec, in_place, b, n);
      EXPECT_TRUE(in_place.same_bits(y));
      Array scaled = a;
      scale(exec, scaled, 0.3F, n);
      for (std::int64_t i = 0; i < n; ++i) {
        Array want(1, type);
        want.set(0, static_cast<float>(a.get(i)) + static_cast<float>(b.get(i)));
        ASSERT_EQ(y.get(i), want.get(0));
        want.set(0, static_cast<float>(a.get(i)) * 0.3F);
        ASSERT_EQ(scaled.get(i), want.get(0));
      }
    }
  }
}

TEST_P(Elementwise, ThreadsDoNotChangeResults) {
  const std::int64_t n = (1 << 18) + 77;
  const Array x(random_doubles(n, 8, -4, 4), DType::bf16);
  Array one(n, DType::bf16);
  Array two(n, DType::bf16);
  gelu_forward(exec, one, x, n);
  Exec threaded = exec;
  threaded.threads = 3;
  gelu_forward(threaded, two, x, n);
  EXPECT_TRUE(one.same_bits(two));
}

TEST(Dispatch, CudaFailsClearly) {
  Exec exec;
  exec.backend = Backend::cuda;
  float x = 1.0F;
  try {
    scale(exec, {&x, DType::f32}, 2.0F, 1);
    FAIL() << "no error";
  } catch (const KernelError& e) {
    EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("scale"), ::testing::HasSubstr("CUDA")));
  }
  EXPECT_EQ(x, 1.0F);
}

TEST(Dispatch, BadArgumentsAreNamed) {
  Exec exec;
  float x = 1.0F;
  EXPECT_THROW(scale(exec, {&x, DType::f32}, 2.0F, -1), KernelError);
  exec.threads = 0;
  EXPECT_THROW(scale(exec, {&x, DType::f32}, 2.0F, 1), KernelError);
  exec.threads = 1;
  try {
    static_cast<void>(attention_scratch_bytes(exec, DType::f32, 1, 4, 10, 3));
    FAIL() << "no error";
  } catch (const KernelError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("C=10"));
  }
}

TEST(Dispatch, FillZero) {
  std::array<unsigned char, 5> bytes{1, 2, 3, 4, 5};
  fill_zero({}, bytes.data() + 1, 3);
  EXPECT_EQ(bytes, (std::array<unsigned char, 5>{1, 0, 0, 0, 5}));
  fill_zero({}, nullptr, 0);
}

}  // namespace
}  // namespace shardscope::kernels::test
