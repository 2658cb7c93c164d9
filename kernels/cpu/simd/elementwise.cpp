// Element-wise kernels: blocks that fit the first-level cache are converted to floats if necessary, computed,
// and converted back with one rounding. y may be an operand: a block of all operands, or a single element, is
// read before it is written.
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

/// y[i] = f(a[i]) for floats. map2: y[i] = f(a[i], b[i]). Results of padding zeros after the end are not
/// stored.
template <class F>
[[gnu::always_inline]] inline void map1(float* y, const float* a, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, f(load(a + i)));
  if (i < n) store_partial(y + i, f(load_partial(a + i, n - i)), n - i);
}
template <class F>
[[gnu::always_inline]] inline void map2(float* y, const float* a, const float* b, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, f(load(a + i), load(b + i)));
  if (i < n) store_partial(y + i, f(load_partial(a + i, n - i), load_partial(b + i, n - i)), n - i);
}

// The same for any storage type; floats are read and written in place.
template <class F>
[[gnu::always_inline]] inline void unary(void* y, DType y_type, const void* a, DType a_type, std::int64_t n,
                                         F f) {
  // 4 KiB per buffer: all buffers of a block stay in the first-level cache between the passes.
  alignas(64) float in[kBlock];
  alignas(64) float result[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    const float* src = stage_in(a, a_type, i, count, in);
    float* dst = stage_place(y, y_type, i, result);
    map1(dst, src, count, f);
    stage_out(y, y_type, i, count, dst);
  }
}
template <class F>
[[gnu::always_inline]] inline void binary(void* y, DType y_type, const void* a, DType a_type, const void* b,
                                          DType b_type, std::int64_t n, F f) {
  alignas(64) float left[kBlock];
  alignas(64) float right[kBlock];
  alignas(64) float result[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    const float* src_a = stage_in(a, a_type, i, count, left);
    const float* src_b = stage_in(b, b_type, i, count, right);
    float* dst = stage_place(y, y_type, i, result);
    map2(dst, src_a, src_b, count, f);
    stage_out(y, y_type, i, count, dst);
  }
}

// GELU, tanh form: z(u) = sqrt(2/pi) (u + 0.044715 u^3).
constexpr float kSqrt2OverPi = 0.7978845608028654F;
constexpr float kCubic = 0.044715F;

/// sigmoid(2 z(u)) with z the argument of GELU's tanh, since 0.5 (1 + tanh z) = 1 / (1 + exp(-2 z)). |u| is
/// at most kFarOut, where it is 0 or 1 to within 1e-36 and exp neither overflows nor becomes subnormal.
SHARDSCOPE_INLINE vf gelu_gate(vf u) {
  const vf square = u * u;
  const vf minus_2z = u * fma(square, set1(-2.0F * kSqrt2OverPi * kCubic), set1(-2.0F * kSqrt2OverPi));
  return reciprocal(1.0F + exp_in_range(minus_2z));
}
constexpr float kFarOut = 9.9F;  // 2 z = 85
SHARDSCOPE_INLINE vf gelu_clamp(vf u) { return min(set1(kFarOut), max(set1(-kFarOut), u)); }
/// Bounded below too: the remainder of the gate times a large u would not be 0. NaN is the second operand of
/// max and min, so it passes both bounds.
SHARDSCOPE_INLINE vf gelu_value(vf u, vf gate) { return max(set1(-kFarOut), u) * gate; }
/// With s = sigmoid(2 z): d(u s)/du = s + u s (1 - s) 2 z', z' = sqrt(2/pi) (1 + 3 * 0.044715 u^2). u is
/// clamped.
SHARDSCOPE_INLINE vf gelu_slope(vf u, vf s) {
  const vf slope2 = fma(u * u, set1(6.0F * kSqrt2OverPi * kCubic), set1(2.0F * kSqrt2OverPi));
  return fma(u * s * (1.0F - s), slope2, s);
}

}  // namespace

void cast(void* dst, DType dst_type, const void* src, DType src_type, std::int64_t n) {
  // No type, no arithmetic: bits are copied, NaN payloads too.
  if (dst_type == src_type) {
    if (dst != src)
      __builtin_memmove(dst, src, static_cast<std::size_t>(n) * (src_type == DType::f32 ? 4 : 2));
    return;
  }
  with_type(src_type, [&](auto from) {
    with_type(dst_type, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const auto* in = static_cast<const typename From::Storage*>(src);
      auto* result = static_cast<typename To::Storage*>(dst);
      std::int64_t i = 0;
      // Register to register: no buffer between two conversions.
      for (; i + W <= n; i += W) To::store(result + i, From::load(in + i));
      if (i < n) store_partial<To>(result + i, load_partial<From>(in + i, n - i), n - i);
    });
  });
}

void scale(void* x, DType type, float factor, std::int64_t n) {
  unary(
      x, type, x, type, n, [factor](vf a) __attribute__((always_inline)) { return a * factor; });
}

void add(void* y, DType y_type, const void* a, DType a_type, const void* b, DType b_type, std::int64_t n) {
  binary(
      y, y_type, a, a_type, b, b_type, n, [](vf p, vf q) __attribute__((always_inline)) { return p + q; });
}

void gelu_forward(void* y, DType y_type, const void* x, DType x_type, std::int64_t n) {
  unary(
      y, y_type, x, x_type, n,
      [](vf u) __attribute__((always_inline)) { return gelu_value(u, gelu_gate(gelu_clamp(u))); });
}

// dx = dy * gelu'(x).
void gelu_backward(void* dx, DType dx_type, const void* dy, DType dy_type, const void* x, DType x_type,
                   std::int64_t n) {
  binary(
      dx, dx_type, dy, dy_type, x, x_type, n, [](vf g, vf x_value) __attribute__((always_inline)) {
        const vf u = gelu_clamp(x_value);
        return g * gelu_slope(u, gelu_gate(u));
      });
}

// Rows of a product's tile, just written. x holds the argument and is overwritten by the slope.
void gelu_rows_slope(float* y, std::int64_t ldy, float* x, std::int64_t ldx, std::int64_t rows,
                     std::int64_t n) {
  // Value and slope share the exponential, the expensive part of both.
  const auto both = [](vf u, vf & slope) __attribute__((always_inline)) {
    const vf clamped = gelu_clamp(u);
    const vf gate = gelu_gate(clamped);
    slope = gelu_slope(clamped, gate);
    return gelu_value(u, gate);
  };
  for (std::int64_t r = 0; r < rows; ++r, y += ldy, x += ldx) {
    std::int64_t i = 0;
    vf slope;
    for (; i + W <= n; i += W) {
      store(y + i, both(load(x + i), slope));
      store(x + i, slope);
    }
    if (i < n) {
      store_partial(y + i, both(load_partial(x + i, n - i), slope), n - i);
      store_partial(x + i, slope, n - i);
    }
  }
}

void multiply(float* y, const float* a, const float* b, std::int64_t n) {
  map2(
      y, a, b, n, [](vf p, vf q) __attribute__((always_inline)) { return p * q; });
}

void relu_forward(void* y, DType y_type, const void* x, DType x_type, std::int64_t n) {
  unary(
      // NaN is the second operand, so it stays NaN.
      y, y_type, x, x_type, n, [](vf u) __attribute__((always_inline)) { return max(vf{}, u); });
}

// The slope at 0 and of NaN is 0.
void relu_backward(void* dx, DType dx_type, const void* dy, DType dy_type, const void* x, DType x_type,
                   std::int64_t n) {
  binary(
      dx, dx_type, dy, dy_type, x, x_type, n,
      [](vf g, vf u) __attribute__((always_inline)) { return u > 0.0F ? g : vf{}; });
}

void add_bias(float* y, const float* bias, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  for (std::int64_t r = 0; r < rows; ++r) {
    map2(
        y + r * ld, y + r * ld, bias, cols, [](vf p, vf q) __attribute__((always_inline)) { return p + q; });
  }
}

// |x| as max(x, 0 - x): one of the two is not negative.
void add_abs(float* sums, const void* x, DType type, std::int64_t n) {
  alignas(64) float in[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    map2(
        sums + i, sums + i, stage_in(x, type, i, count, in), count,
        [](vf sum, vf value) __attribute__((always_inline)) { return sum + max(value, vf{} - value); });
  }
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
