// Small matrix products out of the first- and second-level cache, for attention's blocks. Only for this
// folder.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kTileVectors = 4;  // 6 x 4 accumulators + 4 of B leave room in 32 registers
#else
constexpr int kTileVectors = 2;  // 6 x 2 accumulators + 2 of B + 1 of A in 16 registers
#endif
constexpr int kTileRows = 6;

/// A operand: element (i, k) at data[i * row + k * column], so a transposed matrix is read in place.
struct Strided {
  const float* data;
  std::int64_t row, column;
};

template <int MR, int NV, bool kAdd>
[[gnu::always_inline]] inline void tile(std::int64_t depth, const float* a, std::int64_t row,
                                        std::int64_t column, const float* b, std::int64_t ldb, float* c,
                                        std::int64_t ldc) {
  vf sum_of[MR][NV];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sum_of[r][v] = kAdd ? load(c + r * ldc + v * W) : vf{};
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    vf b_of[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) b_of[v] = load(b + k * ldb + v * W);
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const vf a_of = set1(a[r * row + k * column]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) sum_of[r][v] = fma(a_of, b_of[v], sum_of[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) store(c + r * ldc + v * W, sum_of[r][v]);
  }
}

template <int NV, bool kAdd>
[[gnu::noinline]] void tile_column(std::int64_t m, std::int64_t depth, Strided a, const float* b,
                                   std::int64_t ldb, float* c, std::int64_t ldc) {
  std::int64_t i = 0;
  for (; i + kTileRows <= m; i += kTileRows) {
    tile<kTileRows, NV, kAdd>(depth, a.data + i * a.row, a.row, a.column, b, ldb, c + i * ldc, ldc);
  }
  const float* rest = a.data + i * a.row;
  float* to = c + i * ldc;
  switch (m - i) {
    case 1:
      tile<1, NV, kAdd>(depth, rest, a.row, a.column, b, ldb, to, ldc);
      break;
    case 2:
      tile<2, NV, kAdd>(depth, rest, a.row, a.column, b, ldb, to, ldc);
      break;
    case 3:
      tile<3, NV, kAdd>(depth, rest, a.row, a.column, b, ldb, to, ldc);
      break;
    case 4:
      tile<4, NV, kAdd>(depth, rest, a.row, a.column, b, ldb, to, ldc);
      break;
    case 5:
      tile<5, NV, kAdd>(depth, rest, a.row, a.column, b, ldb, to, ldc);
      break;
    default:
      break;
  }
}

/// c[m, n] (+)= a[m, depth] b[depth, n], n a multiple of W; b and c row-major with leading dimensions ldb and
/// ldc. Each element sums over `depth` in order.
template <bool kAdd>
[[gnu::always_inline]] inline void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, Strided a,
                                            const float* b, std::int64_t ldb, float* c, std::int64_t ldc) {
  std::int64_t j = 0;
  for (; j + kTileVectors * W <= n; j += kTileVectors * W) {
    tile_column<kTileVectors, kAdd>(m, depth, a, b + j, ldb, c + j, ldc);
  }
  switch ((n - j) / W) {
    case 1:
      tile_column<1, kAdd>(m, depth, a, b + j, ldb, c + j, ldc);
      break;
#if defined(__AVX512F__)
    case 2:
      tile_column<2, kAdd>(m, depth, a, b + j, ldb, c + j, ldc);
      break;
    case 3:
      tile_column<3, kAdd>(m, depth, a, b + j, ldb, c + j, ldc);
      break;
#endif
    default:
      break;
  }
}

}  // namespace
}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
