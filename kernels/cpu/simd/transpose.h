// Transposes W rows of one vector each in registers. Only for this folder.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

#if defined(__AVX512F__)
/// x[i][j] to x[j][i].
// Four steps of 16 shuffles, two at a time on the same inputs: pairs of rows, fours, eights, all. A "quarter"
// is a 128-bit lane; the first two steps stay within it. 64 shuffles of registers, for 256 elements.
SHARDSCOPE_INLINE void transpose(vf (&rows)[16]) {
  const auto join = [](vf low, vf high, auto shuffle) __attribute__((always_inline)) {
    return reinterpret_cast<vf>(shuffle(reinterpret_cast<__m512>(low), reinterpret_cast<__m512>(high)));
  };
  const auto low_lanes = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_unpacklo_ps(a, b);
  };
  const auto high_lanes = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_unpackhi_ps(a, b);
  };
  const auto low_pairs = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high_pairs = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto even_quarters = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_shuffle_f32x4(a, b, 0x88);
  };
  const auto odd_quarters = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_shuffle_f32x4(a, b, 0xDD);
  };
  vf t[16];
  // Quarter q of t[i] and t[i + 1]: columns 4q, 4q + 1 and 4q + 2, 4q + 3 of rows i and i + 1, interleaved.
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = join(rows[i], rows[i + 1], low_lanes);
    t[i + 1] = join(rows[i], rows[i + 1], high_lanes);
  }
  // Quarter q of rows[i + c]: column 4q + c of rows i to i + 3.
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      rows[i + 2 * j] = join(t[i + j], t[i + j + 2], low_pairs);
      rows[i + 2 * j + 1] = join(t[i + j], t[i + j + 2], high_pairs);
    }
  }
  // t[i + j]: columns j and j + 8 of rows i to i + 3, then of rows i + 4 to i + 7; t[i + j + 4]: columns j +
  // 4 and j + 12.
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 8) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      t[i + j] = join(rows[i + j], rows[i + j + 4], even_quarters);
      t[i + j + 4] = join(rows[i + j], rows[i + j + 4], odd_quarters);
    }
  }
  // Column j, and column j + 8, of all 16 rows.
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    rows[j] = join(t[j], t[j + 8], even_quarters);
    rows[j + 8] = join(t[j], t[j + 8], odd_quarters);
  }
}
#else
SHARDSCOPE_INLINE void transpose(vf (&rows)[W]) {
  float lanes[W][W];
  for (std::int64_t i = 0; i < W; ++i) store(lanes[i], rows[i]);
  for (std::int64_t i = 0; i < W; ++i) {
    for (std::int64_t j = 0; j < W; ++j) rows[j][i] = lanes[i][j];
  }
}
#endif

}  // namespace
}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
