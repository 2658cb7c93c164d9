// Layer norm over rows, and column sums. Parameter gradients are summed over groups of 64 rows first, which
// keeps the rounding error of a sum over many rows small; the order is fixed.
//
// A 16-bit row is converted once into scratch memory and all passes read it there. With xhat = (x - mean)
// rstd: y = xhat weight + bias, dweight = sum of dy xhat, dbias = sum of dy.
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

constexpr std::int64_t kRowGroup = 64;

/// f(i, load, store) over whole vectors and the partial last one of [0, n).
template <class F>
[[gnu::always_inline]] inline void for_vectors(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    f(
        i, [](const float* p) __attribute__((always_inline)) { return load(p); },
        [](float* p, vf x) __attribute__((always_inline)) { store(p, x); });
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    f(
        i, [rest](const float* p) __attribute__((always_inline)) { return load_partial(p, rest); },
        [rest](float* p, vf x) __attribute__((always_inline)) { store_partial(p, x, rest); });
  }
}

// total[n] += x[n]
SHARDSCOPE_INLINE void add_to(float* total, const float* x, std::int64_t n) {
  for_vectors(
      n, [&](std::int64_t i, auto get, auto put)
             __attribute__((always_inline)) { put(total + i, get(total + i) + get(x + i)); });
}

// Four partial sums, so that additions do not depend on each other; the order depends only on n.
SHARDSCOPE_INLINE float row_sum(const float* x, std::int64_t n) {
  vf s0{}, s1{}, s2{}, s3{};
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    s0 += load(x + i);
    s1 += load(x + i + W);
    s2 += load(x + i + 2 * W);
    s3 += load(x + i + 3 * W);
  }
  for (; i + W <= n; i += W) s0 += load(x + i);
  if (i < n) s1 += load_partial(x + i, n - i);
  return sum((s0 + s1) + (s2 + s3));
}

// Sum of (x - mean)^2. From deviations, not as mean(x^2) - mean^2, which cancels if the mean is large.
SHARDSCOPE_INLINE float row_squares(const float* x, float mean, std::int64_t n) {
  vf s0{}, s1{}, s2{}, s3{};
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    const vf a = load(x + i) - mean;
    const vf b = load(x + i + W) - mean;
    const vf c = load(x + i + 2 * W) - mean;
    const vf d = load(x + i + 3 * W) - mean;
    s0 = fma(a, a, s0);
    s1 = fma(b, b, s1);
    s2 = fma(c, c, s2);
    s3 = fma(d, d, s3);
  }
  for (; i + W <= n; i += W) {
    const vf a = load(x + i) - mean;
    s0 = fma(a, a, s0);
  }
  // Not with load_partial: its padding zeros would each add mean^2.
  float tail = 0.0F;
  for (; i < n; ++i) tail += (x[i] - mean) * (x[i] - mean);
  return sum((s0 + s1) + (s2 + s3)) + tail;
}

}  // namespace

// The sum of a group of 64 rows is in `partial`, which stays in cache; then it is added to
// `total`.
void column_sums(float* total, float* partial, const void* x, DType type, std::int64_t rows,
                 std::int64_t cols, float* row) {
  for (std::int64_t first = 0; first < rows; first += kRowGroup) {
    const std::int64_t last = first + kRowGroup < rows ? first + kRowGroup : rows;
    __builtin_memset(partial, 0, static_cast<std::size_t>(cols) * sizeof(float));
    for (std::int64_t r = first; r < last; ++r) add_to(partial, stage_in(x, type, r * cols, cols, row), cols);
    add_to(total, partial, cols);
  }
}

// Three passes over each row: mean, variance about it, result.
void layer_norm_forward(void* y, DType y_type, float* mean, float* rstd, const void* x, DType x_type,
                        const float* weight, const float* bias, std::int64_t rows, std::int64_t C,
                        float epsilon, float* row) {
  const float inverse = 1.0F / static_cast<float>(C);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = stage_in(x, x_type, r * C, C, row);
    const float m = row_sum(in, C) * inverse;
    const float variance = row_squares(in, m, C) * inverse;
    const float s = 1.0F / __builtin_sqrtf(variance + epsilon);
    mean[r] = m;
    rstd[r] = s;
    // For 16-bit y this is `row`, which may also hold x: element i is read before it is written.
    float* result = stage_place(y, y_type, r * C, row);
    for_vectors(
        C, [&](std::int64_t i, auto get, auto put) __attribute__((always_inline)) {
          const vf normal = (get(in + i) - m) * s;
          put(result + i, fma(normal, get(weight + i), get(bias + i)));
        });
    stage_out(y, y_type, r * C, C, result);
  }
}

// Scratch: partial_weight, partial_bias, and a row each of dy, x and dx as floats; C floats each. 16-bit rows
// are converted into theirs, fp32 rows are used in place.
void layer_norm_backward(void* dx, DType dx_type, bool add_dx, float* dweight, float* dbias, const void* dy,
                         DType dy_type, const void* x, DType x_type, const float* weight, const float* mean,
                         const float* rstd, std::int64_t rows, std::int64_t C, float* scratch) {
  float* partial_weight = scratch;
  float* partial_bias = scratch + C;
  float* row_dy = scratch + 2 * C;
  float* row_x = scratch + 3 * C;
  float* row_dx = scratch + 4 * C;
  const float inverse = 1.0F / static_cast<float>(C);
  for (std::int64_t first = 0; first < rows; first += kRowGroup) {
    const std::int64_t last = first + kRowGroup < rows ? first + kRowGroup : rows;
    // partial_bias follows partial_weight.
    __builtin_memset(partial_weight, 0, static_cast<std::size_t>(2 * C) * sizeof(float));
    for (std::int64_t r = first; r < last; ++r) {
      const float* g = stage_in(dy, dy_type, r * C, C, row_dy);
      const float* in = stage_in(x, x_type, r * C, C, row_x);
      const float m = mean[r];
      const float s = rstd[r];
      // First pass over a row: both means and the parameter gradients. Second pass: dx, from recomputed xhat
      // and h.
      vf sum_h{}, sum_hx{};
      for_vectors(
          C, [&](std::int64_t i, auto get, auto put) __attribute__((always_inline)) {
            const vf grad = get(g + i);
            const vf normal = (get(in + i) - m) * s;
            const vf h = grad * get(weight + i);
            sum_h += h;
            // Lanes after the row's end: the gradient is zero there, so they add nothing.
            sum_hx = fma(h, normal, sum_hx);
            put(partial_bias + i, get(partial_bias + i) + grad);
            put(partial_weight + i, fma(grad, normal, get(partial_weight + i)));
          });
      // dx = rstd (h - mean(h) - xhat mean(h xhat)), h = dy * weight.
      const float mean_h = sum(sum_h) * inverse;
      const float mean_hx = sum(sum_hx) * inverse;
      // dx may be dy in 16 bits: that row is converted already. For floats in place, each element is read
      // before it is written.
      const float* before = add_dx ? stage_in(dx, dx_type, r * C, C, row_dx) : nullptr;
      float* result = stage_place(dx, dx_type, r * C, row_dx);
      for_vectors(
          C, [&](std::int64_t i, auto get, auto put) __attribute__((always_inline)) {
            const vf normal = (get(in + i) - m) * s;
            const vf h = get(g + i) * get(weight + i);
            vf d = s * fma(normal, set1(-mean_hx), h - mean_h);
            if (before != nullptr) d += get(before + i);
            put(result + i, d);
          });
      stage_out(dx, dx_type, r * C, C, result);
    }
    add_to(dweight, partial_weight, C);
    add_to(dbias, partial_bias, C);
  }
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
