// Packs the operands of a product into the layout of its tiles, at once or in pieces beside the products
// ([Note: beside the products] in gemm.cpp). Only for this folder.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {

#if defined(__AVX512F__)
namespace {

// Lengths are in floats.
constexpr int kVectors = 3;
constexpr std::int64_t kPanel = kVectors * W;
constexpr std::int64_t kLine = 16;          // floats in a cache line
constexpr std::int64_t kStrip = 4 * kLine;  // columns of a transposed A packed together
constexpr std::int64_t kSegment = 64;       // steps of depth between two pieces of side work
constexpr std::int64_t kDepth = 512;  // of a block; 8 rows of A are then a third of the first-level cache
constexpr std::int64_t kColumns = 4 * kPanel;      // of a block of B
constexpr std::int64_t kWideColumns = 8 * kPanel;  // if A is packed again for every block
/// Groups of 16 columns in a strip have a stride one cache line larger than their depth: with a power of two
/// the lines of one row would map to one set of the cache.
constexpr std::int64_t kGroup = (kDepth + 1) * kLine;
constexpr std::int64_t kStripFloats = kStrip / kLine * kGroup;
constexpr std::int64_t kBlockFloats = kWideColumns * kDepth;
constexpr std::int64_t kRowsAhead = 6;  // a row is prefetched this many rows before it is copied

SHARDSCOPE_INLINE std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
SHARDSCOPE_INLINE std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Lanes outside a mask are neither read nor written: no access passes the end of an array. Prefetches may
// have any address.
SHARDSCOPE_INLINE __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= W ? 0xFFFFU : (1U << n) - 1U);
}
SHARDSCOPE_INLINE vf load_lanes(const float* p, __mmask16 lanes) {
  return reinterpret_cast<vf>(_mm512_maskz_loadu_ps(lanes, p));
}
SHARDSCOPE_INLINE void store_lanes(float* p, vf x, __mmask16 lanes) {
  _mm512_mask_storeu_ps(p, lanes, reinterpret_cast<__m512>(x));
}

/// Prefetches a line that will be read, into the first-level cache, although it may be evicted before its
/// use: when prefetched into the second level only (PREFETCHT1), many lines were late on Zen 4, and packing a
/// transposed A then took a tenth of a product.
[[gnu::always_inline]] inline void ask(const float* line) { __builtin_prefetch(line, 0, 3); }

/// Prefetches rows of a matrix: rows of `run` floats, 64 floats at a time.
struct RowPrefetcher {
  const float* at = nullptr;
  const float* row_end = nullptr;
  std::int64_t run = 0, stride = 0;
  std::int64_t left = 0;         // pieces of 64 floats
  std::int64_t per_segment = 0;  // pieces per call

  /// `rows` rows of `run` floats from `first`, within `segments` segments.
  [[gnu::always_inline]] static RowPrefetcher of(const float* first, std::int64_t rows, std::int64_t run,
                                                 std::int64_t stride, std::int64_t segments) {
    const std::int64_t pieces = rows * (round_up(run, kSegment) / kSegment);
    return {first, first + run, run, stride, pieces, segments > 0 ? (pieces + segments - 1) / segments : 0};
  }
  [[gnu::always_inline]] void step() {
    for (std::int64_t n = least(per_segment, left); n > 0; --n) {
      for (int line = 0; line < 4; ++line) ask(at + line * kLine);
      at += kSegment;
      // The last piece of a row may be short; the next one is in the next row.
      if (at >= row_end) {
        at = row_end + (stride - run);
        row_end += stride;
      }
      --left;
    }
  }
};

/// Packs a strip of a transposed A, row by row: to[group][depth][16]. A row is one step of depth and kStrip
/// elements long, four whole cache lines of A as stored (k, m). A tile of 8 rows then reads 8 of the 16
/// floats at to[group][k], one cache line per step.
struct StripCopy {
  const float* from = nullptr;
  std::int64_t stride = 0;
  float* to = nullptr;
  std::int64_t left = 0;  // rows
  std::int64_t per_segment = 0;
  std::int64_t columns = 0;

  /// Copies one row; missing columns of an incomplete last group become zeros.
  [[gnu::always_inline]] void row() {
    if (columns == kStrip) {
      for (int group = 0; group < 4; ++group) store(to + group * kGroup, load(from + group * kLine));
    } else {
      for (std::int64_t i = 0; i < columns; i += kLine) {
        store(to + i / kLine * kGroup, load_lanes(from + i, first_lanes(columns - i)));
      }
    }
    for (int line = 0; line < 4; ++line) ask(from + kRowsAhead * stride + line * kLine);
    from += stride;
    to += kLine;
    --left;
  }
  [[gnu::always_inline]] void step() {
    for (std::int64_t n = least(per_segment, left); n > 0; --n) row();
  }
};

/// Packs a block of a non-transposed B, row by row: panel[depth][width of the panel]. The panel of columns
/// [j, j + kPanel) starts at to + j * depth, since all earlier ones are kPanel wide. The last panel's width
/// is rounded up to whole vectors, zero-padded.
struct BlockCopy {
  const float* from = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;  // of the block
  std::int64_t depth = 0;
  float* to = nullptr;
  std::int64_t left = 0;         // pieces, each a row of a panel
  std::int64_t per_segment = 0;  // pieces per segment
  std::int64_t k = 0, j = 0;     // of the next piece

  [[gnu::always_inline]] void piece() {
    const float* source = from + k * stride + j;
    for (std::int64_t i = 0; i < kPanel; i += kLine) ask(source + kRowsAhead * stride + i);
    const std::int64_t count = least(kPanel, columns - j);
    if (count == kPanel) {
      float* row = to + j * depth + k * kPanel;
      for (std::int64_t i = 0; i < kPanel; i += W) store(row + i, load(source + i));
    } else {
      float* row = to + j * depth + k * round_up(count, W);
      for (std::int64_t i = 0; i < count; i += W) {
        store(row + i, load_lanes(source + i, first_lanes(count - i)));
      }
    }
    j += kPanel;
    // Along a row of B over all panels, then the next row: the source is read sequentially.
    if (j >= columns) {
      j = 0;
      ++k;
    }
    --left;
  }
  [[gnu::always_inline]] void step() {
    for (std::int64_t n = least(per_segment, left); n > 0; --n) piece();
  }
  void finish() {
    while (left > 0) piece();
  }
};

/// panel[k][vectors * 16] = b[k, 0..columns), zero-padded, of a B whose columns are rows in memory. 16 x
/// 16 elements at a time are loaded as rows of 16 k, transposed in registers and stored as rows of 16
/// columns.
void pack_columns(float* panel, const float* b, std::int64_t ldb, std::int64_t columns, std::int64_t depth) {
  const std::int64_t width = round_up(columns, W);
  for (std::int64_t k = 0; k < depth; k += W) {
    const __mmask16 lanes = first_lanes(depth - k);
    const std::int64_t steps = least(depth - k, W);
    for (std::int64_t j = 0; j < columns; j += W) {
      const std::int64_t rows = least(columns - j, W);
      vf x[W];
      // The full case is separate, so that its loads need no masks.
      if (rows == W && steps == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) x[i] = load(b + (j + i) * ldb + k);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) x[i] = i < rows ? load_lanes(b + (j + i) * ldb + k, lanes) : vf{};
      }
      transpose(x);
      float* to = panel + k * width + j;
      if (steps == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) store(to + i * width, x[i]);
      } else {
        for (std::int64_t i = 0; i < steps; ++i) store(to + i * width, x[i]);
      }
    }
  }
}

/// sums[0..columns) += the sums over depth of a packed strip, in four parts: short sums round less.
void add_row_sums(float* sums, const float* strip, std::int64_t columns, std::int64_t depth) {
  for (std::int64_t i = 0; i < columns; i += kLine) {
    const float* from = strip + i / kLine * kGroup;
    vf part[4] = {};
    std::int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) part[p] += load(from + (k + p) * kLine);
    }
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      if (k + p < depth) part[p] += load(from + (k + p) * kLine);
    }
    const __mmask16 lanes = first_lanes(columns - i);
    store_lanes(sums + i, load_lanes(sums + i, lanes) + ((part[0] + part[1]) + (part[2] + part[3])), lanes);
  }
}

}  // namespace
#endif

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
