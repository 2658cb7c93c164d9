// Sums and maxima over the lanes of W rows at once, with a third of the shuffles of a row-by-row reduction.
// Only for this folder.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

#if defined(__AVX512F__)
/// Lane i of the result is the reduction of row i's lanes by `join`, as a fixed tree: that of sum() and
/// max_lane(), lanes 8 apart, then 4, 2 and 1. Each step joins two halves of two registers into one, so that
/// 16 rows take 8 + 4 + 2 + 1 joins instead of 16 * 4.
template <class Join>
[[gnu::always_inline]] inline vf reduce_rows(const float (*rows)[W], Join join) {
  const auto fold = [&](__m512 low, __m512 high) __attribute__((always_inline)) {
    return reinterpret_cast<__m512>(join(reinterpret_cast<vf>(low), reinterpret_cast<vf>(high)));
  };
  // (a0 + a2, a1 + a3, b0 + b2, b1 + b3) of the quarters of two rows four apart.
  __m512 half[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const int row = i < 4 ? i : i + 4;
    const __m512 a = _mm512_loadu_ps(rows[row]);
    const __m512 b = _mm512_loadu_ps(rows[row + 4]);
    half[i] = fold(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
  __m512 quarter[4];  // four lanes of each of rows i, i + 4, i + 8, i + 12
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    quarter[i] = fold(_mm512_shuffle_f32x4(half[i], half[i + 4], 0x88),
                      _mm512_shuffle_f32x4(half[i], half[i + 4], 0xDD));
  }
  // Lanes of a quarter: (row i, row i + 2) twice, lanes 0 + 2 and 1 + 3 of each.
  __m512 pair[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    pair[i] =
        fold(_mm512_unpacklo_ps(quarter[i], quarter[i + 2]), _mm512_unpackhi_ps(quarter[i], quarter[i + 2]));
  }
  return reinterpret_cast<vf>(
      fold(_mm512_unpacklo_ps(pair[0], pair[1]), _mm512_unpackhi_ps(pair[0], pair[1])));
}

SHARDSCOPE_INLINE vf sums_of_rows(const float (*rows)[W]) {
  return reduce_rows(
      rows, [](vf a, vf b) __attribute__((always_inline)) { return a + b; });
}
SHARDSCOPE_INLINE vf largest_of_rows(const float (*rows)[W]) {
  return reduce_rows(
      rows, [](vf a, vf b) __attribute__((always_inline)) { return max(a, b); });
}
#else
SHARDSCOPE_INLINE vf sums_of_rows(const float (*rows)[W]) {
  vf x{};
  for (std::int64_t i = 0; i < W; ++i) x[i] = sum(load(rows[i]));
  return x;
}
SHARDSCOPE_INLINE vf largest_of_rows(const float (*rows)[W]) {
  vf x{};
  for (std::int64_t i = 0; i < W; ++i) x[i] = max_lane(load(rows[i]));
  return x;
}
#endif

}  // namespace
}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
