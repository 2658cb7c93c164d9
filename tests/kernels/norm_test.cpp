#include <array>

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using LayerNorm = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(LayerNorm);

constexpr float kEpsilon = 1e-5F;

Doubles reference(const Doubles& x, const Doubles& w, const Doubles& b, std::int64_t N, std::int64_t C) {
  Doubles y(x.size());
  for (std::int64_t n = 0; n < N; ++n) {
    double mean = 0;
    double variance = 0;
    for (std::int64_t c = 0; c < C; ++c) mean += x[at(n * C + c)] / static_cast<double>(C);
    for (std::int64_t c = 0; c < C; ++c)
      variance += std::pow(x[at(n * C + c)] - mean, 2) / static_cast<double>(C);
    const double rstd = 1.0 / std::sqrt(variance + static_cast<double>(kEpsilon));
    for (std::int64_t c = 0; c < C; ++c)
      y[at(n * C + c)] = (x[at(n * C + c)] - mean) * rstd * w[at(c)] + b[at(c)];
  }
  return y;
}

TEST_P(LayerNorm, Forward) {
  for (const auto& [N, C] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 3}, {2, 7}, {5, 17}, {4, 30}, {2, 384}, {1, 1601}}) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(N * C, 1, -1, 3), type);
      const Array w(random_doubles(C, 2), type);
      const Array b(random_doubles(C, 3), type);
      Array y(N * C, type);
      std::vector<float> mean(at(N));
      std::vector<float> rstd(at(N));
      layer_norm_forward(exec, y, mean.data(), rstd.data(), x, w, b, N, C, kEpsilon);
      EXPECT_TRUE(close(y.doubles(), reference(x.doubles(), w.doubles(), b.doubles(), N, C),
                        1.01 * unit_roundoff(type), 3e-6))
          << N << 'x' << C;
      EXPECT_GT(rstd[0], 0.0F);
    }
  }
}

TEST_P(LayerNorm, AnOffsetFarFromZeroKeepsItsDigits) {
  // Mean of squares minus square of mean would lose everything here.
  const std::int64_t C = 100;
  const Array x(random_doubles(C, 1, 9999, 10001), DType::f32);
  const Array w(Doubles(at(C), 1.0), DType::f32);
  const Array b(Doubles(at(C), 0.0), DType::f32);
  Array y(C, DType::f32);
  float mean = 0;
  float rstd = 0;
  layer_norm_forward(exec, y, &mean, &rstd, x, w, b, 1, C, kEpsilon);
  // x itself is exact to 2^-11 / 2 at 10^4, and so is the mean.
  EXPECT_TRUE(close(y.doubles(), reference(x.doubles(), w.doubles(), b.doubles(), 1, C), 0, 3e-3));
}

TEST_P(LayerNorm, BackwardAgainstCentralDifferences) {
  for (const auto& [N, C] :
       {std::pair<std::int64_t, std::int64_t>{1, 2}, {3, 3}, {2, 7}, {3, 17}, {2, 30}, {70, 5}}) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(N * C, 4), type);
      const Array w(random_doubles(C, 5), type);
      const Array dy(random_doubles(N * C, 6), type);
      Doubles xs = x.doubles();
      Doubles ws = w.doubles();
      Doubles bs(at(C), 0.0);
      const Doubles gs = dy.doubles();
      const auto loss = [&, rows = N, width = C] { return dot(reference(xs, ws, bs, rows, width), gs); };
      Array y(N * C, type);
      std::vector<float> mean(at(N));
      std::vector<float> rstd(at(N));
      layer_norm_forward(exec, y, mean.data(), rstd.data(), x, w, Array(bs, type), N, C, kEpsilon);
      const Doubles want_dx = central_differences(xs, loss);
      const Doubles want_dw = central_differences(ws, loss);
      const Doubles want_db = central_differences(bs, loss);
      for (const Write write : {Write::set, Write::add}) {
        Array dx(random_doubles(N * C, 7), type);
        Array dw(random_doubles(C, 8), type);
        Array db(random_doubles(C, 9), type);
        const auto expected = [write](Doubles want, const Array& before) {
          for (std::size_t i = 0; write == Write::add && i < want.size(); ++i) {
            want[i] += before.get(static_cast<std::int64_t>(i));
          }
          return want;
        };
        const Doubles e_dx = expected(want_dx, dx);
        const Doubles e_dw = expected(want_dw, dw);
        const Doubles e_db = expected(want_db, db);
        layer_norm_backward(exec, dx, dw, db, dy, x, w, mean.data(), rstd.data(), N, C, write, write);
        // Two equal elements in a row make rstd large; the bound is relative to it.
        const double magnitude = static_cast<double>(*std::max_element(rstd.begin(), rstd.end()));
        const double relative = 1.01 * unit_roundoff(type);
        EXPECT_TRUE(close(dx.doubles(), e_dx, relative, 4e-6 * magnitude * magnitude)) << N << 'x' << C;
        EXPECT_TRUE(close(dw.doubles(), e_dw, relative, 2e-5)) << N << 'x' << C;
        EXPECT_TRUE(close(db.doubles(), e_db, relative, 2e-5)) << N << 'x' << C;
      }
    }
  }
}

TEST_P(LayerNorm, ParameterGradientsAreOptionalAndDxMayBeDy) {
  const std::int64_t N = 3;
  const std::int64_t C = 17;
  const Array x(random_doubles(N * C, 1), DType::f32);
  const Array w(random_doubles(C, 2), DType::f32);
  Array y(N * C, DType::f32);
  std::vector<float> mean(3);
  std::vector<float> rstd(3);
  layer_norm_forward(exec, y, mean.data(), rstd.data(), x, w, w, N, C, kEpsilon);
  Array dy(random_doubles(N * C, 3), DType::f32);
  Array dx(N * C, DType::f32);
  layer_norm_backward(exec, dx, Ptr{}, Ptr{}, dy, x, w, mean.data(), rstd.data(), N, C, Write::set,
                      Write::set);
  layer_norm_backward(exec, dy, Ptr{}, Ptr{}, dy, x, w, mean.data(), rstd.data(), N, C, Write::set,
                      Write::set);
  EXPECT_TRUE(dx.same_bits(dy));
}

}  // namespace
}  // namespace shardscope::kernels::test
