#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Optimizer = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Optimizer);

struct AdamReference {
  Doubles w, m, v;
  void step(const Doubles& grad, const AdamW& s) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = grad[i] * static_cast<double>(s.grad_scale);
      if (s.decoupled) {
        w[i] *= 1.0 - static_cast<double>(s.lr) * static_cast<double>(s.weight_decay);
      } else {
        g += static_cast<double>(s.weight_decay) * w[i];
      }
      const double b1 = s.beta1;
      const double b2 = s.beta2;
      const double t = static_cast<double>(s.step);
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      w[i] -= static_cast<double>(s.lr) * (m[i] / (1 - std::pow(b1, t))) /
              (std::sqrt(v[i] / (1 - std::pow(b2, t))) + static_cast<double>(s.epsilon));
    }
  }
};

TEST_P(Optimizer, TenStepsFollowTheDefinition) {
  for (const bool decoupled : {true, false}) {
    for (const DType type : kAllTypes) {
      const std::int64_t n = 37;
      Array w(random_doubles(n, 1), DType::f32);
      Array m(Doubles(37, 0.0), DType::f32);
      Array v(Doubles(37, 0.0), DType::f32);
      Array w16(n, DType::bf16);
      AdamReference reference{w.doubles(), m.doubles(), v.doubles()};
      AdamW settings;
      settings.decoupled = decoupled;
      settings.weight_decay = 0.1F;
      settings.grad_scale = 0.25F;
      for (settings.step = 1; settings.step <= 10; ++settings.step) {
        const Array grad(random_doubles(n, 20 + static_cast<unsigned>(settings.step), -4, 4), type);
        adamw_step(exec, w.f32(), m.f32(), v.f32(), w16, grad, n, settings);
        reference.step(grad.doubles(), settings);
      }
      // lr 1e-3 per step: ten updates of 1e-3, each with a few fp32 roundings, on weights of size 1.
      EXPECT_TRUE(close(w.doubles(), reference.w, 1e-6, 5e-7));
      EXPECT_TRUE(close(m.doubles(), reference.m, 1e-5, 1e-6));
      EXPECT_TRUE(close(v.doubles(), reference.v, 1e-5, 1e-7));
      for (std::int64_t i = 0; i < n; ++i) {
        Array rounded(1, DType::bf16);
        rounded.set(0, static_cast<float>(w.get(i)));
        ASSERT_EQ(w16.get(i), rounded.get(0));
      }
    }
  }
}

TEST_P(Optimizer, StepZeroIsRefused) {
  float x = 0;
  AdamW settings;
  settings.step = 0;
  EXPECT_THROW(adamw_step(exec, &x, &x, &x, Ptr{}, {&x, DType::f32}, 1, settings), KernelError);
}

TEST_P(Optimizer, SquaredNormIsAccumulatedInDouble) {
  for (const std::int64_t n : {0, 1, 3, 17, 30, 1024, 5003}) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(n, 1), type);
      double want = 2.5;
      for (const double value : x.doubles()) want += value * value;
      double sum = 2.5;
      std::uint32_t bad = 0;
      squared_norm(exec, &sum, &bad, x, n);
      EXPECT_NEAR(sum, want, 1e-13 * want);
      EXPECT_EQ(bad, 0U);
    }
  }
}

TEST_P(Optimizer, SquaredNormFindsEveryBadElement) {
  const std::int64_t n = 1100;
  for (const DType type : kAllTypes) {
    for (const std::int64_t where : {0, 5, 31, 32, 1023, 1024, 1099}) {
      for (const float value : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
        Array x(random_doubles(n, 1), type);
        x.set(where, value);
        double sum = 0;
        std::uint32_t bad = 2;
        squared_norm(exec, &sum, &bad, x, n);
        ASSERT_EQ(bad, 3U) << where;
      }
    }
  }
  Array large({3e38, -3e38}, DType::f32);  // its square overflows fp32, not double, and it is not bad
  double sum = 0;
  std::uint32_t bad = 0;
  squared_norm(exec, &sum, &bad, large, 2);
  EXPECT_EQ(bad, 0U);
  EXPECT_TRUE(std::isfinite(sum));
}

TEST_P(Optimizer, CountsInfinitiesAndNansApart) {
  for (const DType type : kAllTypes) {
    Array x(random_doubles(1100, 1), type);
    NotFiniteCount counts{5, 7};
    count_not_finite(exec, &counts, x, 1100);
    EXPECT_EQ(counts.infinite, 5U);
    EXPECT_EQ(counts.nan, 7U);
    x.set(0, HUGE_VALF);
    x.set(31, -HUGE_VALF);
    x.set(1098, HUGE_VALF);
    x.set(1023, std::nanf(""));
    x.set(1099, -std::nanf(""));  // not looked at
    count_not_finite(exec, &counts, x, 1099);
    EXPECT_EQ(counts.infinite, 8U);
    EXPECT_EQ(counts.nan, 8U);
  }
}

}  // namespace
}  // namespace shardscope::kernels::test
