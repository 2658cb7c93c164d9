#include <array>

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Linear = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Linear);

struct LinearShape {
  std::int64_t N, in, out;
};
// The last ones cross the blocks 16-bit operands are converted in (512 and 2048 rows, 2^21 weights).
constexpr std::array<LinearShape, 9> kLinearShapes{LinearShape{1, 1, 1}, {1, 7, 3},       {3, 1, 17},
                                                   {17, 30, 10},         {64, 48, 96},    {521, 24, 31},
                                                   {2055, 9, 5},         {5, 2048, 1041}, {530, 1030, 2051}};

/// Slow to make and to check, and about blocks, which no instruction set changes: run once.
bool is_large(const LinearShape& s) { return s.N * s.in * s.out > 1'000'000; }

Doubles reference_forward(const Doubles& x, const Doubles& w, const Doubles& bias, const LinearShape& s) {
  Doubles y(at(s.N * s.out));
  for (std::int64_t n = 0; n < s.N; ++n) {
    for (std::int64_t o = 0; o < s.out; ++o) {
      double sum = bias.empty() ? 0.0 : bias[at(o)];
      for (std::int64_t i = 0; i < s.in; ++i) sum += x[at(n * s.in + i)] * w[at(o * s.in + i)];
      y[at(n * s.out + o)] = sum;
    }
  }
  return y;
}

/// fp32 accumulation of `depth` products of numbers in [-1, 1]: error below depth * 2^-24 * sum of
/// magnitudes, in practice far below; results themselves are of size sqrt(depth) / 3.
double absolute_bound(std::int64_t depth, DType type) {
  const double magnitude = std::sqrt(static_cast<double>(depth)) + 2.0;
  return magnitude * (4e-6 + (type == DType::f32 ? 0.0 : unit_roundoff(type) * 1e-2));
}

TEST_P(Linear, ForwardWithAndWithoutBias) {
  for (const LinearShape& s : kLinearShapes) {
    for (const DType type : kAllTypes) {
      if (is_large(s) && (type != DType::bf16 || GetParam() != cpu::best_isa())) continue;
      const Array x(random_doubles(s.N * s.in, 1), type);
      const Array w(random_doubles(s.out * s.in, 2), type);
      const Array bias(random_doubles(s.out, 3), type);
      Array y(s.N * s.out, type);
      linear_forward(exec, y, x, w, bias, s.N, s.in, s.out);
      const double relative = 1.01 * unit_roundoff(type);
      EXPECT_TRUE(close(y.doubles(), reference_forward(x.doubles(), w.doubles(), bias.doubles(), s), relative,
                        absolute_bound(s.in, type)))
          << s.N << 'x' << s.in << 'x' << s.out;
      if (is_large(s)) continue;
      linear_forward(exec, y, x, w, ConstPtr{}, s.N, s.in, s.out);
      EXPECT_TRUE(close(y.doubles(), reference_forward(x.doubles(), w.doubles(), {}, s), relative,
                        absolute_bound(s.in, type)));
    }
  }
}

/// Depths within one block and over several, with columns and rows that fill no tile.
TEST_P(Linear, ForwardOntoSomething) {
  for (const LinearShape& s :
       {LinearShape{1, 1, 1}, LinearShape{17, 30, 10}, LinearShape{19, 1100, 67}, LinearShape{521, 24, 31}}) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(s.N * s.in, 1), type);
      const Array w(random_doubles(s.out * s.in, 2), type);
      const Array bias(random_doubles(s.out, 3), type);
      const Array onto(random_doubles(s.N * s.out, 4, -4, 4), type);
      Array y(s.N * s.out, type);
      linear_forward(exec, y, x, w, bias, s.N, s.in, s.out, onto);
      Doubles want = reference_forward(x.doubles(), w.doubles(), bias.doubles(), s);
      const Doubles added = onto.doubles();
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += added[i];
      // One rounding of the sum in fp32 more, of a number below 2 sqrt(depth) + 4.
      EXPECT_TRUE(close(y.doubles(), want, 1.01 * unit_roundoff(type), 2 * absolute_bound(s.in, type)))
          << s.N << 'x' << s.in << 'x' << s.out;
      if (type != DType::f32) continue;
      // As a sum of its own, to the bit.
      Array alone(s.N * s.out, type);
      linear_forward(exec, alone, x, w, bias, s.N, s.in, s.out);
      add(exec, alone, alone, onto, s.N * s.out);
      EXPECT_EQ(alone.doubles(), y.doubles()) << s.N << 'x' << s.in << 'x' << s.out;
    }
  }
  const Array some({1, 1}, DType::f32);
  Array y(2, DType::f32);
  EXPECT_ANY_THROW(linear_forward(exec, y, some, some, {}, 2, 1, 1, Array({1, 1}, DType::bf16)));
}

/// As the layers one after the other, to the bit; those are compared with their formulas elsewhere. Also
/// where the GELU is flat, and over several blocks of depth.
TEST_P(Linear, GeluWithinProducts) {
  for (const LinearShape& s : {LinearShape{1, 1, 1}, LinearShape{17, 30, 10}, LinearShape{19, 1100, 67},
                               LinearShape{67, 19, 1100}}) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(s.N * s.in, 1), type);
      const Array w(random_doubles(s.out * s.in, 2), type);
      const Array bias(random_doubles(s.out, 3, -20, 20), type);
      const Array dy(random_doubles(s.N * s.out, 4), type);
      Array argument(s.N * s.out, type);
      Array y(s.N * s.out, type);
      Array d_argument(s.N * s.out, type);
      linear_forward(exec, argument, x, w, bias, s.N, s.in, s.out);
      gelu_forward(exec, y, argument, s.N * s.out);
      gelu_backward(exec, d_argument, dy, argument, s.N * s.out);
      Array kept(s.N * s.out, type);
      Array within(s.N * s.out, type);
      linear_gelu_forward(exec, within, kept, x, w, bias, s.N, s.in, s.out);
      EXPECT_EQ(within.doubles(), y.doubles()) << s.N << 'x' << s.in << 'x' << s.out;
      gelu_backward_kept(exec, within, dy, kept, s.N * s.out);
      EXPECT_EQ(within.doubles(), d_argument.doubles()) << s.N << 'x' << s.in << 'x' << s.out;

      // The next layer, of which that GELU's result is the input: out to in.
      const Array next_dy(random_doubles(s.N * s.in, 5), type);
      const Array next_w(random_doubles(s.in * s.out, 6), type);
      Array dx(s.N * s.out, type);
      linear_backward_input(exec, dx, next_dy, next_w, s.N, s.out, s.in, Write::set);
      gelu_backward(exec, dx, dx, argument, s.N * s.out);
      linear_gelu_backward_input(exec, within, next_dy, next_w, kept, s.N, s.out, s.in);
      EXPECT_EQ(within.doubles(), dx.doubles()) << s.N << 'x' << s.in << 'x' << s.out;
    }
  }
  Array full(1, DType::f32);
  Array half(1, DType::bf16);
  EXPECT_ANY_THROW(linear_gelu_forward(exec, full, half, full, full, {}, 1, 1, 1));
  EXPECT_ANY_THROW(linear_gelu_forward(exec, full, full, full, half, {}, 1, 1, 1));
  EXPECT_ANY_THROW(gelu_backward_kept(exec, half, full, full, 1));
  EXPECT_ANY_THROW(linear_gelu_backward_input(exec, full, half, full, full, 1, 1, 1));
}

TEST_P(Linear, BackwardAgainstCentralDifferences) {
  for (const LinearShape& s : {LinearShape{1, 1, 1}, LinearShape{3, 7, 5}, LinearShape{7, 10, 3}}) {
    Doubles x = random_doubles(s.N * s.in, 4);
    Doubles w = random_doubles(s.out * s.in, 5);
    Doubles bias = random_doubles(s.out, 6);
    const Doubles dy = random_doubles(s.N * s.out, 7);
    const auto loss = [&] { return dot(reference_forward(x, w, bias, s), dy); };
    Array dx(s.N * s.in, DType::f32);
    Array dw(s.out * s.in, DType::f32);
    Array dbias(s.out, DType::f32);
    const Array grad(dy, DType::f32);
    linear_backward_input(exec, dx, grad, Array(w, DType::f32), s.N, s.in, s.out, Write::set);
    linear_backward_weight(exec, dw, dbias, grad, Array(x, DType::f32), s.N, s.in, s.out, Write::set);
    EXPECT_TRUE(close(dx.doubles(), central_differences(x, loss), 1e-5, 1e-6));
    EXPECT_TRUE(close(dw.doubles(), central_differences(w, loss), 1e-5, 1e-6));
    EXPECT_TRUE(close(dbias.doubles(), central_differences(bias, loss), 1e-5, 1e-6));
  }
}

TEST_P(Linear, BackwardOfEveryTypeSetsAndAdds) {
  for (const LinearShape& s : kLinearShapes) {
    for (const DType type : kAllTypes) {
      if (is_large(s) && (type != DType::bf16 || GetParam() != cpu::best_isa())) continue;
      const Array x(random_doubles(s.N * s.in, 8), type);
      const Array w(random_doubles(s.out * s.in, 9), type);
      const Array dy(random_doubles(s.N * s.out, 10), type);
      const Doubles xs = x.doubles();
      const Doubles ws = w.doubles();
      const Doubles gs = dy.doubles();
      Doubles want_dx(xs.size());
      Doubles want_dw(ws.size());
      Doubles want_dbias(at(s.out));
      for (std::int64_t n = 0; n < s.N; ++n) {
        for (std::int64_t o = 0; o < s.out; ++o) {
          const double g = gs[at(n * s.out + o)];
          want_dbias[at(o)] += g;
          for (std::int64_t i = 0; i < s.in; ++i) {
            want_dx[at(n * s.in + i)] += g * ws[at(o * s.in + i)];
            want_dw[at(o * s.in + i)] += g * xs[at(n * s.in + i)];
          }
        }
      }
      const double relative = 1.01 * unit_roundoff(type);
      for (const Write write : {Write::set, Write::add}) {
        Array dx(random_doubles(s.N * s.in, 11), type);
        Array dw(random_doubles(s.out * s.in, 12), type);
        Array dbias(random_doubles(s.out, 13), type);
        const auto expected = [write](const Doubles& gradient, const Array& before) {
          Doubles want = gradient;
          if (write == Write::add) {
            for (std::size_t i = 0; i < want.size(); ++i) want[i] += before.get(static_cast<std::int64_t>(i));
          }
          return want;
        };
        const Doubles e_dx = expected(want_dx, dx);
        const Doubles e_dw = expected(want_dw, dw);
        const Doubles e_dbias = expected(want_dbias, dbias);
        linear_backward_input(exec, dx, dy, w, s.N, s.in, s.out, write);
        linear_backward_weight(exec, dw, dbias, dy, x, s.N, s.in, s.out, write);
        EXPECT_TRUE(close(dx.doubles(), e_dx, relative, absolute_bound(s.out, type)))
            << s.N << 'x' << s.in << 'x' << s.out;
        EXPECT_TRUE(close(dw.doubles(), e_dw, relative, absolute_bound(s.N, type)))
            << s.N << 'x' << s.in << 'x' << s.out;
        EXPECT_TRUE(close(dbias.doubles(), e_dbias, relative, absolute_bound(s.N, type)));
      }
    }
  }
}

TEST_P(Linear, MissingDxAndDbiasAreLeftOut) {
  const Array x(random_doubles(6, 1), DType::f32);
  const Array dy(random_doubles(4, 2), DType::f32);
  Array dw(6, DType::f32);
  linear_backward_input(exec, Ptr{}, dy, x, 2, 3, 2, Write::set);
  linear_backward_weight(exec, dw, Ptr{}, dy, x, 2, 3, 2, Write::set);
  EXPECT_NE(dw.get(0), 0.0);
}

TEST_P(Linear, RepeatedCallsAgreeBitwiseAndHoldNoMoreMemory) {
  const LinearShape s{96, 64, 80};
  for (const DType type : kAllTypes) {
    const Array x(random_doubles(s.N * s.in, 1), type);
    const Array w(random_doubles(s.out * s.in, 2), type);
    Array first(s.N * s.out, type);
    linear_forward(exec, first, x, w, ConstPtr{}, s.N, s.in, s.out);
    const std::size_t held = cpu_workspace_bytes();
    for (const int shift : {0, 1, 2, 3, 16}) {
      const Array moved_x(x.doubles(), type, shift);
      const Array moved_w(w.doubles(), type, 5 - shift % 4);
      Array again(s.N * s.out, type, shift);
      linear_forward(exec, again, moved_x, moved_w, ConstPtr{}, s.N, s.in, s.out);
      EXPECT_TRUE(again.same_bits(first)) << "alignment changed the result";
    }
    EXPECT_EQ(cpu_workspace_bytes(), held);
  }
}

}  // namespace
}  // namespace shardscope::kernels::test
