// Small matrix products on data in the first- and second-level cache, for attention's blocks. Only for this
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
// 6 x 4 or 6 x 2 independent sums hide the latency of a multiply-add.
constexpr int kTileRows = 6;

/// Operand A: element (i, k) at data[i * row + k * column], so a transposed matrix is read in place.
struct Strided {
  const float* data;
  std::int64_t row, column;
};

/// c[MR, NV * W] (+)= a[MR, depth] b[depth, NV * W]; b and c row-major with leading dimensions
/// ldb and ldc. Each element sums over `depth` in order. b is read in whole vectors: its
/// padding columns must be zeros or finite. noinline: each instance's loop gets the whole
/// register file.
template <int MR, int NV, bool kAdd>
[[gnu::noinline]] void multiply_tile(std::int64_t depth, Strided from, const float* b, std::int64_t ldb,
                                     float* c, std::int64_t ldc) {
  vf sum_of[MR][NV];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sum_of[r][v] = kAdd ? load(c + r * ldc + v * W) : vf{};
  }
  const float* a = from.data;
  const std::int64_t row = from.row;
  for (std::int64_t k = 0; k < depth; ++k) {
    vf b_of[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) b_of[v] = load(b + v * W);
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const vf a_of = set1(a[r * row]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) sum_of[r][v] = fma(a_of, b_of[v], sum_of[r][v]);
    }
    a += from.column;
    b += ldb;
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) store(c + r * ldc + v * W, sum_of[r][v]);
  }
}

using SmallTile = void (*)(std::int64_t depth, Strided a, const float* b, std::int64_t ldb, float* c,
                           std::int64_t ldc);
template <bool kAdd, int NV>
constexpr SmallTile kSmallTilesOf[kTileRows] = {multiply_tile<1, NV, kAdd>, multiply_tile<2, NV, kAdd>,
                                                multiply_tile<3, NV, kAdd>, multiply_tile<4, NV, kAdd>,
                                                multiply_tile<5, NV, kAdd>, multiply_tile<6, NV, kAdd>};
/// Indexed by vectors - 1 and rows - 1 of the tile.
template <bool kAdd>
#if defined(__AVX512F__)
constexpr const SmallTile* kSmallTiles[kTileVectors] = {kSmallTilesOf<kAdd, 1>, kSmallTilesOf<kAdd, 2>,
                                                        kSmallTilesOf<kAdd, 3>, kSmallTilesOf<kAdd, 4>};
#else
constexpr const SmallTile* kSmallTiles[kTileVectors] = {kSmallTilesOf<kAdd, 1>, kSmallTilesOf<kAdd, 2>};
#endif

/// Whether a product sets or adds to the result; a block's first product sets it.
enum class Sum : std::uint8_t { set, add };

/// c[rows, vectors * W] (+)= a[rows, depth] b[depth, vectors * W], rows at most kTileRows. With depth <= 0, c
/// is set to 0 or unchanged.
SHARDSCOPE_INLINE void multiply_rows(std::int64_t rows, std::int64_t vectors, std::int64_t depth, Strided a,
                                     const float* b, std::int64_t ldb, float* c, std::int64_t ldc, Sum sum) {
  for (std::int64_t v = 0; v < vectors; v += kTileVectors) {
    // The instance of this size from the table: rows and vectors are constants in it.
    const std::int64_t width = vectors - v < kTileVectors ? vectors - v : kTileVectors;
    const SmallTile* const tiles = (sum == Sum::add ? kSmallTiles<true> : kSmallTiles<false>)[width - 1];
    tiles[rows - 1](depth, a, b + v * W, ldb, c + v * W, ldc);
  }
}

}  // namespace
}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
