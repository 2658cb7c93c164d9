// Matrix products with a GELU beside them, of which CUDA's 16-bit ones may leave it to cuBLASLt's epilogue.
#include <cmath>
#include <numbers>

#include "tests/gpu/both.h"

namespace shardscope::gpu {
namespace {

struct Shape {
  std::int64_t N, in, out;
  int shift;
};
// The second is a GPT-2's; then widths that are not divisible by 8 and arrays that are not aligned.
constexpr Shape kShapes[] = {
    {1, 8, 8, 0}, {64, 384, 1536, 0}, {1, 1, 1, 0}, {19, 30, 44, 0}, {17, 40, 24, 1}};
constexpr DType kHalves[] = {DType::bf16, DType::f16};

/// The processor's tanh is off by 2^-11 (PTX, tanh.approx.f32), a GELU therefore by half of that times its
/// argument.
constexpr double kTanhError = 0x1p-11;
constexpr double kSteepest = 1.13;  ///< of a GELU

/// Error of sums of `depth` products of numbers up to 0.1 in another order, in fp32.
double sum_bound(std::int64_t depth) { return 4 * 0x1p-24 * static_cast<double>(depth) * 0.1; }

::testing::AssertionResult within(const Doubles& got, const Doubles& want,
                                  const std::function<double(std::size_t)>& bound) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!(std::fabs(got[i] - want[i]) <= bound(i)))
      return ::testing::AssertionFailure()
             << "element " << i << ": " << got[i] << ", not " << want[i] << " +- " << bound(i);
  }
  return ::testing::AssertionSuccess();
}

/// On the CPU one after the other, rounded between.
void forward(const Exec& e, Both& y, Both& kept, Both& x, Both& w, ConstPtr bias, const Shape& s) {
  if (e.backend == kernels::Backend::cpu) {
    kernels::linear_forward(e, kept.on(e), x.on(e), w.on(e), bias, s.N, s.in, s.out);
    kernels::gelu_forward(e, y.on(e), kept.on(e), s.N * s.out);
  } else {
    kernels::linear_gelu_forward(e, y.on(e), kept.on(e), x.on(e), w.on(e), bias, s.N, s.in, s.out);
  }
}

TEST_F(CudaKernels, GeluOfAProduct) {
  for (const Shape& s : kShapes) {
    for (const DType type : kAllTypes) {
      Both x(*device, random_doubles(s.N * s.in, 31), type, s.shift);
      Both w(*device, random_doubles(s.in * s.out, 32, -0.1, 0.1), type, s.shift);
      Both b(*device, random_doubles(s.out, 33, -4, 4), type, s.shift);
      Both y(*device, s.N * s.out, type, s.shift);
      Both kept(*device, s.N * s.out, type, s.shift);
      const double round = unit_roundoff(type);
      for (const bool with_bias : {true, false}) {
        both([&](const Exec& e) {
          forward(e, y, kept, x, w, with_bias ? ConstPtr(b.on(e)) : ConstPtr(nullptr, type), s);
        });
        EXPECT_TRUE(kept.near(2 * round, sum_bound(s.in))) << s.N << ' ' << s.in << ' ' << s.out;
        // Two roundings of the result; the argument before and after its rounding; the tanh.
        const Doubles u = kept.host().doubles();
        const Doubles want = y.host().doubles();
        EXPECT_TRUE(
            within(y.from_device().doubles(), want,
                   [&](std::size_t i) {
                     const double argument = kSteepest * (round * std::fabs(u[i]) + 2 * sum_bound(s.in));
                     const double tanh = type == DType::f32 ? 8 * 0x1p-24 : kTanhError / 2;
                     return 2.1 * round * std::fabs(want[i]) + argument + tanh * std::fabs(u[i]) + 1e-7;
                   }))
            << s.N << ' ' << s.in << ' ' << s.out << (with_bias ? "" : " without bias");
      }
    }
  }
}

TEST_F(CudaKernels, GradientThroughAGeluBeforeAProduct) {
  for (const Shape& s : kShapes) {
    for (const DType type : kAllTypes) {
      Both dy(*device, random_doubles(s.N * s.out, 34), type, s.shift);
      Both w(*device, random_doubles(s.in * s.out, 35, -0.1, 0.1), type, s.shift);
      Both argument(*device, random_doubles(s.N * s.in, 36, -3, 3), type, s.shift);
      Both grad(*device, s.N * s.in, type, s.shift);
      Both dx(*device, s.N * s.in, type, s.shift);
      both([&](const Exec& e) {
        if (e.backend == kernels::Backend::cpu) {
          kernels::linear_backward_input(e, grad.on(e), dy.on(e), w.on(e), s.N, s.in, s.out, Write::set);
          kernels::gelu_backward(e, dx.on(e), grad.on(e), argument.on(e), s.N * s.in);
        } else {
          kernels::linear_gelu_backward_input(e, dx.on(e), dy.on(e), w.on(e), argument.on(e), s.N, s.in,
                                              s.out);
        }
      });
      EXPECT_TRUE(argument.same_bits()) << "it is read only";
      // Two roundings of the result; the product before and after its rounding; the tanh, which the slope
      // takes at most 6 times for arguments up to 3.
      const double round = unit_roundoff(type);
      const Doubles g = grad.host().doubles();
      const Doubles want = dx.host().doubles();
      EXPECT_TRUE(within(dx.from_device().doubles(), want,
                         [&](std::size_t i) {
                           const double slope = type == DType::f32 ? 16 * 0x1p-24 : 6 * kTanhError;
                           return 2.1 * round * std::fabs(want[i]) +
                                  kSteepest * (round * std::fabs(g[i]) + 2 * sum_bound(s.out)) +
                                  slope * std::fabs(g[i]) + 2e-6;
                         }))
          << s.N << ' ' << s.in << ' ' << s.out;
    }
  }
}

double tanh_gelu(double u) {
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u)));
}
double erf_gelu(double u) { return 0.5 * u * std::erfc(-u / std::numbers::sqrt2); }
double slope_of(double (*gelu)(double), double u) { return (gelu(u + 1e-5) - gelu(u - 1e-5)) / 2e-5; }

/// 0: `got` is what `tanh` says, 1: what `erf` says, in the mean over all elements: one element's rounding
/// may be as large as their difference.
double share_of_erf(const Doubles& got, const Doubles& tanh, const Doubles& erf) {
  double along = 0;
  double length = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    along += (got[i] - tanh[i]) * (erf[i] - tanh[i]);
    length += (erf[i] - tanh[i]) * (erf[i] - tanh[i]);
  }
  return along / length;
}

/// Arguments for which the two differ most, by products of one number with 1.
TEST_F(CudaKernels, GeluOfProductsHasTheTanhForm) {
  constexpr std::int64_t kRows = 8;
  constexpr std::int64_t kWidth = 1024;
  for (const DType type : kHalves) {
    Doubles unit(8 * kRows, 0.0);
    for (std::size_t n = 0; n < kRows; ++n) unit[8 * n] = 1;
    Doubles column(8 * kWidth, 0.0);  // [kWidth, 8]
    Doubles row(8 * kWidth, 0.0);     // [8, kWidth]
    Doubles arguments;
    for (std::size_t i = 0; i < kWidth; ++i) {
      column[8 * i] = -3.2 + static_cast<double>(i) * 0x1p-9;
      row[i] = 1;
    }
    for (std::size_t n = 0; n < kRows; ++n) {
      for (std::size_t i = 0; i < kWidth; ++i) arguments.push_back(column[8 * i]);
    }
    Both one(*device, unit, type);
    Both w(*device, column, type);
    Both ones(*device, row, type);
    Both u(*device, arguments, type);
    Both y(*device, kRows * kWidth, type);
    Both kept(*device, kRows * kWidth, type);
    Both dx(*device, kRows * kWidth, type);
    device->compute().run([&](const Exec& e) {
      kernels::linear_gelu_forward(e, y.on(e), kept.on(e), one.on(e), w.on(e), {nullptr, type}, kRows, 8,
                                   kWidth);
      kernels::linear_gelu_backward_input(e, dx.on(e), one.on(e), ones.on(e), u.on(e), kRows, kWidth, 8);
    });
    device->compute().synchronize();
    EXPECT_TRUE(kept.from_device().same_bits(u.host()));
    Doubles tanh[2], erf[2];
    for (const double at : u.host().doubles()) {
      tanh[0].push_back(tanh_gelu(at));
      erf[0].push_back(erf_gelu(at));
      tanh[1].push_back(slope_of(tanh_gelu, at));
      erf[1].push_back(slope_of(erf_gelu, at));
    }
    EXPECT_NEAR(share_of_erf(y.from_device().doubles(), tanh[0], erf[0]), 0, 0.5);
    EXPECT_NEAR(share_of_erf(dx.from_device().doubles(), tanh[1], erf[1]), 0, 0.5);
  }
}

}  // namespace
}  // namespace shardscope::gpu
