// Norms in double and sums over ranks in index order.
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

using vd = double __attribute__((vector_size(W * 4)));  // W / 2 doubles
using vhalf = float __attribute__((vector_size(W * 2)));
using vhalf_u = float __attribute__((vector_size(W * 2), aligned(4), may_alias));

// W / 2 floats as doubles: half a vector fills a register.
SHARDSCOPE_INLINE vd load_double(const float* p) {
  const vhalf x = *reinterpret_cast<const vhalf_u*>(p);
  return __builtin_convertvector(x, vd);
}

/// Without conversions: one pass, the sum in a register. `out` may be one of the inputs, whose elements are
/// read before they are written.
void reduce_floats(float* out, const void* const* inputs, std::uint32_t count, std::int64_t offset,
                   std::int64_t n, float factor) {
  const auto input = [&](std::uint32_t k) { return static_cast<const float*>(inputs[k]) + offset; };
  std::int64_t i = 0;
  // Four vectors at a time, so that additions do not depend on each other. In both loops an element is summed
  // in order of inputs.
  for (; i + 4 * W <= n; i += 4 * W) {
    vf total[4];
    for (std::int64_t v = 0; v < 4; ++v) total[v] = load(input(0) + i + v * W);
    for (std::uint32_t k = 1; k < count; ++k) {
      for (std::int64_t v = 0; v < 4; ++v) total[v] += load(input(k) + i + v * W);
    }
    for (std::int64_t v = 0; v < 4; ++v) store(out + i + v * W, total[v] * factor);
  }
  for (; i < n; i += W) {
    const std::int64_t rest = n - i;
    const auto part = [&](std::uint32_t k) __attribute__((always_inline)) {
      return rest < W ? load_partial(input(k) + i, rest) : load(input(k) + i);
    };
    vf total = part(0);
    for (std::uint32_t k = 1; k < count; ++k) total += part(k);
    if (rest < W) {
      store_partial(out + i, total * factor, rest);
    } else {
      store(out + i, total * factor);
    }
  }
}

}  // namespace

// A square of a float is exact in double; in an fp32 sum small elements would be lost. Four partial
// sums hide the latency of additions; they are added in a fixed order, so the bits depend only on n and
// W.
double squared_norm(std::uint32_t* bad, const void* x, DType type, std::int64_t n) {
  alignas(64) float in[kBlock];
  constexpr std::int64_t D = W / 2;
  vd s0{}, s1{}, s2{}, s3{};
  vu worst{};
  double tail = 0.0;
  std::uint32_t tail_bad = 0;
  // Blocks are whole vectors except the last, whose remainder is summed separately, in order.
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    const float* src = stage_in(x, type, i, count, in);
    std::int64_t j = 0;
    for (; j + 2 * W <= count; j += 2 * W) {
      const vd a = load_double(src + j);
      const vd b = load_double(src + j + D);
      const vd c = load_double(src + j + 2 * D);
      const vd d = load_double(src + j + 3 * D);
      s0 += a * a;
      s1 += b * b;
      s2 += c * c;
      s3 += d * d;
      // An exponent of all ones is infinity or NaN.
      const vu low = as_u(load(src + j)) & 0x7FFFFFFFU;
      const vu high = as_u(load(src + j + W)) & 0x7FFFFFFFU;
      worst = low > worst ? low : worst;
      worst = high > worst ? high : worst;
    }
    for (; j < count; ++j) {
      const double value = static_cast<double>(src[j]);
      tail += value * value;
      std::uint32_t bits = 0;
      __builtin_memcpy(&bits, src + j, sizeof bits);
      tail_bad |= (bits & 0x7F800000U) == 0x7F800000U ? 1U : 0U;
    }
  }
  for (std::int64_t i = 0; i < W; ++i) tail_bad |= worst[i] >= 0x7F800000U ? 1U : 0U;
  // NaN and infinity exceed all other magnitudes, also as integers: the maximum shows whether there was
  // one.
  const vd total = (s0 + s1) + (s2 + s3);
  double result = 0.0;
  for (std::int64_t i = 0; i < D; ++i) result += total[i];
  *bad |= tail_bad;
  return result + tail;
}

void reduce_sum(void* out, DType out_type, const void* const* inputs, std::uint32_t count, DType type,
                std::int64_t offset, std::int64_t n, float factor) {
  if (type == DType::f32 && out_type == DType::f32 && count > 0) {
    reduce_floats(static_cast<float*>(out), inputs, count, offset, n, factor);
    return;
  }
  alignas(64) float total[kBlock];
  alignas(64) float staged[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t block = n - i < kBlock ? n - i : kBlock;
    // `out` may be one of the inputs, so the sum is stored separately until all inputs of the block are read.
    for (std::uint32_t k = 0; k < count; ++k) {
      const float* src = stage_in(inputs[k], type, offset + i, block, staged);
      // The first input sets the sum: 0 + -0 would be 0.
      if (k == 0) {
        __builtin_memcpy(total, src, static_cast<std::size_t>(block) * sizeof(float));
        continue;
      }
      std::int64_t j = 0;
      for (; j + W <= block; j += W) store(total + j, load(total + j) + load(src + j));
      if (j < block)
        store_partial(total + j, load_partial(total + j, block - j) + load_partial(src + j, block - j),
                      block - j);
    }
    // An empty sum is 0.
    if (count == 0) __builtin_memset(total, 0, sizeof total);
    // fp32 results are written to `out` directly; others are scaled in `total` and converted from there.
    float* dst = stage_place(out, out_type, i, total);
    for (std::int64_t j = 0; j < block; j += W) {
      const vf x =
          load(total + j) * factor;  // reads within the block's buffer, which is a multiple of W long
      if (j + W <= block) {
        store(dst + j, x);
      } else {
        store_partial(dst + j, x, block - j);
      }
    }
    stage_out(out, out_type, i, block, dst);
  }
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
