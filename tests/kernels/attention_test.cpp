#include <array>

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Attention = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Attention);

struct Shape {
  std::int64_t B, T, C, H;
};

/// Straight from the definition, in double.
Doubles reference(const Doubles& qkv, const Shape& s) {
  const std::int64_t D = s.C / s.H;
  Doubles out(at(s.B * s.T * s.C));
  Doubles p(at(s.T));
  for (std::int64_t b = 0; b < s.B; ++b) {
    for (std::int64_t h = 0; h < s.H; ++h) {
      const auto element = [&](std::int64_t t, std::int64_t part, std::int64_t d) {
        return qkv[at((b * s.T + t) * 3 * s.C + part * s.C + h * D + d)];
      };
      for (std::int64_t t = 0; t < s.T; ++t) {
        double top = -HUGE_VAL;
        for (std::int64_t u = 0; u <= t; ++u) {
          double score = 0;
          for (std::int64_t d = 0; d < D; ++d) score += element(t, 0, d) * element(u, 1, d);
          p[at(u)] = score / std::sqrt(static_cast<double>(D));
          top = std::max(top, p[at(u)]);
        }
        double sum = 0;
        for (std::int64_t u = 0; u <= t; ++u) sum += p[at(u)] = std::exp(p[at(u)] - top);
        for (std::int64_t u = 0; u <= t; ++u) {
          for (std::int64_t d = 0; d < D; ++d) {
            out[at((b * s.T + t) * s.C + h * D + d)] += p[at(u)] / sum * element(u, 2, d);
          }
        }
      }
    }
  }
  return out;
}

/// Forward and backward by the kernels; scratch has exactly the requested size and is followed by a guard.
struct Result {
  Array out, dqkv;
};
Result run(const Exec& exec, const Array& qkv, const Array& dout, DType type, const Shape& s) {
  Result r{Array(s.B * s.T * s.C, type), Array(s.B * s.T * 3 * s.C, type)};
  std::vector<float> logsumexp(at(s.B * s.H * s.T));
  const std::size_t bytes = attention_scratch_bytes(exec, type, s.B, s.T, s.C, s.H);
  std::vector<unsigned char> scratch(bytes + 64, 0xAB);
  attention_forward(exec, r.out, logsumexp.data(), qkv, s.B, s.T, s.C, s.H, scratch.data());
  attention_backward(exec, r.dqkv, dout, r.out, qkv, logsumexp.data(), s.B, s.T, s.C, s.H, scratch.data());
  for (std::size_t i = bytes; i < scratch.size(); ++i)
    EXPECT_EQ(scratch[i], 0xAB) << "wrote behind its scratch";
  return r;
}

TEST_P(Attention, ForwardOfManyShapes) {
  // Widths 1, 10, 32, 64 and 65; T on both sides of a tile (6), the query blocks (48) and key blocks (256).
  for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{1, 1, 10, 1}, Shape{2, 3, 30, 3}, Shape{1, 17, 20, 2},
                         Shape{2, 24, 32, 1}, Shape{1, 25, 64, 1}, Shape{1, 48, 10, 1}, Shape{1, 53, 10, 1},
                         Shape{1, 130, 65, 1}, Shape{1, 300, 20, 2}, Shape{1, 256, 64, 2}}) {
    for (const DType type : kAllTypes) {
      const Array qkv(random_doubles(s.B * s.T * 3 * s.C, 1, -2, 2), type);
      Array out(s.B * s.T * s.C, type);
      std::vector<float> logsumexp(at(s.B * s.H * s.T));
      std::vector<unsigned char> scratch(attention_scratch_bytes(exec, type, s.B, s.T, s.C, s.H));
      attention_forward(exec, out, logsumexp.data(), qkv, s.B, s.T, s.C, s.H, scratch.data());
      EXPECT_TRUE(close(out.doubles(), reference(qkv.doubles(), s), 1.01 * unit_roundoff(type), 4e-6))
          << s.B << ' ' << s.T << ' ' << s.C << ' ' << s.H;
    }
  }
}

TEST_P(Attention, BackwardAgainstCentralDifferences) {
  for (const Shape& s : {Shape{1, 1, 10, 1}, Shape{1, 3, 7, 1}, Shape{2, 7, 6, 2}, Shape{1, 30, 10, 1}}) {
    Doubles point = random_doubles(s.B * s.T * 3 * s.C, 2);
    const Doubles weight = random_doubles(s.B * s.T * s.C, 3);
    const Doubles want = central_differences(point, [&] { return dot(reference(point, s), weight); });
    const Result r = run(exec, Array(point, DType::f32), Array(weight, DType::f32), DType::f32, s);
    EXPECT_TRUE(close(r.dqkv.doubles(), want, 1e-5, 3e-6)) << s.T;
  }
}

TEST_P(Attention, BackwardAcrossKeyBlocksAgainstDirectionalDifferences) {
  // Too many elements to differentiate one by one: random directions through all of them.
  for (const Shape& s :
       {Shape{1, 48, 10, 1}, Shape{1, 53, 7, 1}, Shape{1, 150, 10, 1}, Shape{1, 273, 32, 1}}) {
    const Doubles point = random_doubles(s.B * s.T * 3 * s.C, 4);
    const Doubles weight = random_doubles(s.B * s.T * s.C, 5);
    const Result r = run(exec, Array(point, DType::f32), Array(weight, DType::f32), DType::f32, s);
    const Doubles gradient = r.dqkv.doubles();
    for (unsigned trial = 0; trial < 3; ++trial) {
      const Doubles direction = random_doubles(s.B * s.T * 3 * s.C, 10 + trial);
      const auto along = [&](double step) {
        Doubles moved = point;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
        return dot(reference(moved, s), weight);
      };
      const double want = (along(1e-5) - along(-1e-5)) / 2e-5;
      EXPECT_NEAR(dot(gradient, direction), want, 2e-4 * std::fabs(want) + 2e-4);
    }
  }
}

TEST_P(Attention, SixteenBitBackwardAgainstFloat) {
  const Shape s{1, 40, 20, 2};
  for (const DType type : {DType::bf16, DType::f16}) {
    const Array qkv(random_doubles(s.B * s.T * 3 * s.C, 6), type);
    const Array dout(random_doubles(s.B * s.T * s.C, 7), type);
    const Result half = run(exec, qkv, dout, type, s);
    const Result whole =
        run(exec, Array(qkv.doubles(), DType::f32), Array(dout.doubles(), DType::f32), DType::f32, s);
    // Same inputs; the only 16-bit intermediate is `out`, whose rounding enters delta: |dout| |out| D u.
    const double absolute = 4.0 * unit_roundoff(type);
    EXPECT_TRUE(close(half.dqkv.doubles(), whole.dqkv.doubles(), 1.01 * unit_roundoff(type), absolute));
  }
}

TEST_P(Attention, LogSumExpIsKept) {
  const Shape s{1, 5, 4, 1};
  const Array qkv(random_doubles(s.T * 3 * s.C, 8), DType::f32);
  Array out(s.T * s.C, DType::f32);
  std::vector<float> logsumexp(5);
  std::vector<unsigned char> scratch(attention_scratch_bytes(exec, DType::f32, 1, 5, 4, 1));
  attention_forward(exec, out, logsumexp.data(), qkv, 1, 5, 4, 1, scratch.data());
  double score = 0;  // position 0 sees only itself
  for (std::int64_t d = 0; d < 4; ++d) score += qkv.get(d) * qkv.get(4 + d) / 2.0;
  EXPECT_NEAR(logsumexp[0], score, 1e-6);
}

TEST_P(Attention, LaterTokensDoNotReachEarlierOnes) {
  const Shape s{1, 140, 16, 1};
  Array a(random_doubles(s.T * 3 * s.C, 9), DType::f32);
  Array b = a;
  for (std::int64_t i = 100 * 3 * s.C; i < b.size(); ++i) b.set(i, 50.0F);
  const Array dout(random_doubles(s.T * s.C, 1), DType::f32);
  const Result ra = run(exec, a, dout, DType::f32, s);
  const Result rb = run(exec, b, dout, DType::f32, s);
  for (std::int64_t i = 0; i < 100 * s.C; ++i) ASSERT_EQ(ra.out.get(i), rb.out.get(i));
  EXPECT_NE(ra.out.get(100 * s.C), rb.out.get(100 * s.C));
}

TEST_P(Attention, LargeScoresStayFinite) {
  const Shape s{1, 160, 8, 1};
  const Array qkv(random_doubles(s.T * 3 * s.C, 11, -40, 40), DType::f32);
  const Result r = run(exec, qkv, Array(random_doubles(s.T * s.C, 12), DType::f32), DType::f32, s);
  EXPECT_TRUE(close(r.out.doubles(), reference(qkv.doubles(), s), 1e-3, 1e-2));
  for (const double g : r.dqkv.doubles()) ASSERT_TRUE(std::isfinite(g));
}

TEST_P(Attention, ThreadsDoNotChangeResults) {
  const Shape s{3, 50, 30, 3};
  const Array qkv(random_doubles(s.B * s.T * 3 * s.C, 13), DType::bf16);
  const Array dout(random_doubles(s.B * s.T * s.C, 14), DType::bf16);
  Exec threaded = exec;
  threaded.threads = 2;
  const Result one = run(exec, qkv, dout, DType::bf16, s);
  const Result two = run(threaded, qkv, dout, DType::bf16, s);
  EXPECT_TRUE(one.out.same_bits(two.out));
  EXPECT_TRUE(one.dqkv.same_bits(two.dqkv));
}

}  // namespace
}  // namespace shardscope::kernels::test
