// fp32 matrix products on AVX-512: 8 x 48 sums in registers, so that 24 fused multiply-adds follow 3 vector
// loads and 8 broadcasts, and both multiply-add units stay busy.
//
// The blocking of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a block
// of B of kDepth x kColumns is packed into panels of 48 columns, which stay in the second-level cache and
// stream through the first; A is processed in tiles of 8 rows. Rows of A are read in place; a transposed A is
// packed in strips of 64 columns, whole cache lines of every row.
//
// [Note: beside the products]
// At these shapes an operand is used only a few hundred times, and fetching it from memory, packing it and
// waiting for the lines of C would take a tenth of the time. Multiply-adds leave most of the load and store
// units idle, so every kSegment steps of depth a tile does a little work for later: it prefetches its lines
// of C and the next tile's rows of A (or packs a row of the next strip), and packs some of the next block of
// B into a second buffer. A transposed B needs the registers of the sums for packing, so only its source is
// prefetched.
//
// Every element of C is summed in order of depth, in blocks whose length depends only on k, wherever it is in
// C.
#include "kernels/cpu/gemm.h"

#include "kernels/cpu/simd/gemm_pack.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {

#if defined(__AVX512F__)
namespace {

constexpr int kRows = 8;

// Work of a tile besides its products, see [Note: beside the products]. Each part is cut into as many pieces
// as segments remain until its result is needed; an unfinished copy is completed before it is read.
struct SideWork {
  const float* rows = nullptr;  // of the next tile, from column 0 of the block
  std::int64_t row_stride = 0, row_count = 0;
  /// The next strip of a transposed A.
  StripCopy strip;
  RowPrefetcher b;  // a transposed B is packed in registers that a tile needs: only its source is prefetched
  BlockCopy copy;   // any other B is copied
};

// Operands of one tile: c[R, V * 16] = a[R, depth] panel[depth, V * 16]. panel[k] is V * 16 floats,
// zero-padded after the last column.
struct Tile {
  std::int64_t depth = 0;
  const float* a = nullptr;  // rows `a_row` apart, or packed: element (row, k) at a[k * 16 + row]
  std::int64_t a_row = 0;
  const float* panel = nullptr;
  float* c = nullptr;
  std::int64_t ldc = 0;
  __mmask16 last = 0xFFFF;      // lanes of the last vector of columns
  const float* bias = nullptr;  // of these columns, added to the sums
  bool add = false;             // to c's old value
  Finish finish = Finish::none;
  const float* operand = nullptr;  // like c
  float* activation = nullptr;
  std::int64_t ld_beside = 0;
  SideWork* side = nullptr;
};

// R rows times V vectors of sums: 8 x 3 sums and 3 vectors of the panel take 27 of the 32 registers; the rest
// is for broadcast elements of A. 24 independent sums hide the latency of a multiply-add. R and V are
// constants, so that the sums stay in registers; kTiles has all 48 instances.
template <int R, int V, bool kPacked>
void multiply_tile(const Tile& t) {
  vf sum_of[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum_of[r][v] = vf{};
  }
  const std::int64_t row = t.a_row;
  const float* a0 = t.a;  // three rows per pointer, the range of the addressing modes
  const float* a3 = a0 + 3 * row;
  const float* a6 = a3 + 3 * row;
  const float* b = t.panel;
  // One step of depth, k steps after the pointers. Every sum adds one product per step: in order of
  // depth.
  const auto multiply = [&](int k) __attribute__((always_inline)) {
    vf b_of[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) b_of[v] = load(b + (k * V + v) * W);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float* from = kPacked ? a0 + k * kLine + r : (r < 3 ? a0 : r < 6 ? a3 : a6) + (r % 3) * row + k;
      const vf a_of = set1(*from);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum_of[r][v] = fma(a_of, b_of[v], sum_of[r][v]);
    }
  };
  const auto advance = [&](std::int64_t steps) __attribute__((always_inline)) {
    b += steps * V * W;
    if constexpr (kPacked) {
      a0 += steps * kLine;
    } else {
      a0 += steps;
      a3 += steps;
      a6 += steps;
    }
  };
  SideWork& side = *t.side;
  const float* c_line = t.c;
  const float* operand_line = t.operand;
  const float* activation_line = t.activation;
  std::int64_t k = 0;
  for (std::int64_t r = 0; k + kSegment <= t.depth; k += kSegment) {
    // Two rows of C per segment: all eight are requested after four segments, if depth is at least 256. C for
    // writing (in exclusive state); an operand for reading.
    for (std::int64_t end = least(r + 2, R); r < end; ++r) {
      for (int v = 0; v < V; ++v) __builtin_prefetch(c_line + v * kLine, 1);
      c_line += t.ldc;
      if (operand_line != nullptr) {
        for (int v = 0; v < V; ++v) __builtin_prefetch(operand_line + v * kLine, 0);
        operand_line += t.ld_beside;
      }
      if (activation_line != nullptr) {
        for (int v = 0; v < V; ++v) __builtin_prefetch(activation_line + v * kLine, 1);
        activation_line += t.ld_beside;
      }
    }
    if constexpr (kPacked) {
      side.strip.step();
    } else {
      // A segment's length of the next tile's rows: 64 floats, into the second-level cache.
      for (std::int64_t i = 0; i < side.row_count; ++i) {
        for (int line = 0; line < 4; ++line) {
          __builtin_prefetch(side.rows + i * side.row_stride + k + line * kLine, 0, 2);
        }
      }
    }
    side.b.step();
    side.copy.step();
    for (std::int64_t end = k + kSegment, i = k; i < end; i += 4) {
#pragma GCC unroll 4
      for (int step = 0; step < 4; ++step) multiply(step);
      advance(4);
    }
  }
  // Only the last block of depth may have an incomplete segment (even_part).
  for (; k < t.depth; ++k) {
    multiply(0);
    advance(1);
  }

  // Only existing columns of C and of operands of its shape are accessed; the panel has whole vectors.
  const auto lanes = [&](int v) __attribute__((always_inline)) {
    return v + 1 == V ? t.last : static_cast<__mmask16>(0xFFFF);
  };
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    // In this order: the sums, the bias, c's old value, the operand. See Gemm in gemm.h.
    if (t.bias != nullptr) {
      const vf bias = load_lanes(t.bias + v * W, lanes(v));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum_of[r][v] += bias;
    }
    if (t.add) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum_of[r][v] += load_lanes(t.c + r * t.ldc + v * W, lanes(v));
    }
    const auto operand = [&](int r) __attribute__((always_inline)) {
      return load_lanes(t.operand + r * t.ld_beside + v * W, lanes(v));
    };
    if (t.finish == Finish::add) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum_of[r][v] += operand(r);
    } else if (t.finish == Finish::multiply) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum_of[r][v] *= operand(r);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store_lanes(t.c + r * t.ldc + v * W, sum_of[r][v], lanes(v));
  }
}

// Indexed by rows - 1 and vectors - 1: edges of C have tiles of their own size, with the same operations per
// element.
using TileKernel = void (*)(const Tile&);
template <bool kPacked, int R>
constexpr TileKernel kTilesOf[kVectors] = {multiply_tile<R, 1, kPacked>, multiply_tile<R, 2, kPacked>,
                                           multiply_tile<R, 3, kPacked>};
template <bool kPacked>
constexpr const TileKernel* kTiles[kRows] = {kTilesOf<kPacked, 1>, kTilesOf<kPacked, 2>, kTilesOf<kPacked, 3>,
                                             kTilesOf<kPacked, 4>, kTilesOf<kPacked, 5>, kTilesOf<kPacked, 6>,
                                             kTilesOf<kPacked, 7>, kTilesOf<kPacked, 8>};

/// One block of depth and of columns of a product, and the start of its operands.
struct Block {
  std::int64_t k, depth, j, columns;
};

// One product on one thread. Scratch: two blocks of B (kDepth, kWideColumns), 768 KiB each, then two strips
// of A, slightly over 128 KiB each. One of a pair is read while the other is written; they are swapped
// between blocks and between strips.
class Product {
 public:
  Product(const Gemm& g, const float* a, const float* b, float* c, const float* bias, float* scratch)
      : g_(g),
        a_(a),
        b_(b),
        c_(c),
        bias_(bias),
        block_(scratch),
        next_block_(scratch + kBlockFloats),
        strips_{scratch + 2 * kBlockFloats, scratch + 2 * kBlockFloats + kStripFloats} {}

  // All blocks of columns for one depth, then the next depth: C is read and written once per block of
  // depth.
  void run() {
    const std::int64_t depth = even_part(g_.k, kDepth, kSegment);
    const std::int64_t columns = even_part(g_.n, transposed() ? kWideColumns : kColumns, kPanel);
    Block block = at(0, 0, depth, columns);
    // The first block is not packed beside products: multiply() completes it first.
    if (g_.trans_b == Trans::no) start_copy(block, next_block_, 0);
    for (;;) {
      Block next = at(block.k, block.j + columns, depth, columns);
      if (next.columns <= 0) next = at(block.k + depth, 0, depth, columns);
      multiply(block, next);
      if (next.depth <= 0) return;
      block = next;
    }
  }

 private:
  /// Length of parts of at most `most` into which n is cut; all but the last are equal.
  static std::int64_t even_part(std::int64_t n, std::int64_t most, std::int64_t unit) {
    const std::int64_t parts = (n + most - 1) / most;
    return round_up((n + parts - 1) / parts, unit);
  }
  [[nodiscard]] bool transposed() const { return g_.trans_a == Trans::yes; }
  [[nodiscard]] Block at(std::int64_t k, std::int64_t j, std::int64_t depth, std::int64_t columns) const {
    return {k, least(depth, g_.k - k), j, least(columns, g_.n - j)};
  }

  /// Packs one panel of a transposed B.
  void pack_panel(const Block& block, std::int64_t j, std::int64_t columns) {
    pack_columns(block_ + j * block.depth, b_ + (block.j + j) * g_.ldb + block.k, g_.ldb, columns,
                 block.depth);
  }
  [[nodiscard]] RowPrefetcher source_of(const Block& block, std::int64_t j, std::int64_t columns,
                                        std::int64_t segments) const {
    return RowPrefetcher::of(b_ + (block.j + j) * g_.ldb + block.k, columns, block.depth, g_.ldb, segments);
  }
  /// Sets side_.copy to pack a block within `segments` segments.
  void start_copy(const Block& block, float* to, std::int64_t segments) {
    const std::int64_t pieces = block.depth * ((block.columns + kPanel - 1) / kPanel);
    side_.copy = {.from = b_ + block.k * g_.ldb + block.j,
                  .stride = g_.ldb,
                  .columns = block.columns,
                  .depth = block.depth,
                  .to = to,
                  .left = pieces,
                  .per_segment = segments > 0 ? (pieces + segments - 1) / segments : 0};
  }
  /// Sets side_.strip to pack the strip from row i on of op(A).
  void start_strip(const Block& block, std::int64_t i, float* to, std::int64_t segments) {
    StripCopy& strip = side_.strip;
    strip.from = a_ + block.k * g_.lda + i;
    strip.stride = g_.lda;
    strip.to = to;
    strip.left = block.depth;
    strip.per_segment = segments > 0 ? (block.depth + segments - 1) / segments : 0;
    strip.columns = least(kStrip, g_.m - i);
  }

  // c (+)= op(A) op(B) of one block, tile by tile: down the rows, and for each 8 rows along the panels; these
  // 8 rows of A stay in the first-level cache. `next` is the block to prepare meanwhile, or empty.
  void multiply(const Block& block, const Block& next) {
    const std::int64_t panels = (block.columns + kPanel - 1) / kPanel;
    const std::int64_t segments_of_tile = block.depth / kSegment;
    const std::int64_t segments = panels * segments_of_tile;  // of a row of tiles
    const bool copied = g_.trans_b == Trans::no;
    // Sums are complete only with the last block of depth.
    const Finish finish = block.k + block.depth == g_.k ? g_.finish : Finish::none;
    if (copied) {
      side_.copy.finish();
      // The block packed beside the previous one is now this block; the other buffer is free.
      float* const packed = next_block_;
      next_block_ = block_;
      block_ = packed;
    }
    side_ = SideWork{};
    if (transposed()) {
      start_strip(block, 0, strips_[0], 0);
      while (side_.strip.left > 0) side_.strip.row();
    }
    for (std::int64_t i = 0; i < g_.m; i += kRows) {
      const std::int64_t rows = least(kRows, g_.m - i);
      const std::int64_t rows_after = least(kRows, g_.m - i - rows);
      if (transposed() && i % kStrip == 0) {
        // This strip must be complete before its first tile, however much was packed beside the previous one.
        while (side_.strip.left > 0) side_.strip.row();
        // A strip is used once per block of columns; its sums are added once per depth.
        if (g_.row_sums != nullptr && block.j == 0) {
          add_row_sums(g_.row_sums + i, strips_[i / kStrip % 2], least(kStrip, g_.m - i), block.depth);
        }
        if (i + kStrip < g_.m) {
          start_strip(block, i + kStrip, strips_[(i / kStrip + 1) % 2], kStrip / kRows * segments);
        }
      }
      // The source of a transposed B is prefetched from the second row of tiles on: during the first, side_.b
      // is used for the panels of this block.
      if (copied && i == 0 && next.depth > 0) {
        start_copy(next, next_block_, g_.m / kRows * segments);
      } else if (!copied && i == kRows && next.depth > 0) {
        side_.b = source_of(next, 0, next.columns, (g_.m / kRows - 1) * segments);
      }
      // The next 8 rows of A are prefetched in equal parts, one per panel.
      const std::int64_t rows_per_panel = (rows_after + panels - 1) / panels;
      for (std::int64_t panel = 0; panel < panels; ++panel) {
        const std::int64_t j = panel * kPanel;
        const std::int64_t columns = least(kPanel, block.columns - j);
        if (i == 0 && !copied) {
          pack_panel(block, j, columns);
          // Only the first block's source is prefetched while it is packed; the sources of others already
          // were.
          if (block.k == 0 && block.j == 0 && panel + 1 < panels) {
            side_.b =
                source_of(block, j + kPanel, least(kPanel, block.columns - j - kPanel), segments_of_tile);
          }
        }
        side_.rows = a_ + (i + rows + panel * rows_per_panel) * g_.lda + block.k;
        side_.row_stride = g_.lda;
        side_.row_count = least(rows_per_panel, rows_after - panel * rows_per_panel);
        // Operand and activation are only accessed in the last block of depth; before it a tile gets null.
        const auto beside = [&](auto* matrix) {
          return finish == Finish::none || matrix == nullptr ? nullptr
                                                             : matrix + i * g_.ld_beside + block.j + j;
        };
        const Tile tile{.depth = block.depth,
                        .a = transposed() ? strips_[i / kStrip % 2] + i % kStrip / kLine * kGroup + i % kLine
                                          : a_ + i * g_.lda + block.k,
                        .a_row = g_.lda,
                        .panel = block_ + j * block.depth,
                        .c = c_ + i * g_.ldc + block.j + j,
                        .ldc = g_.ldc,
                        .last = first_lanes((columns - 1) % W + 1),
                        .bias = bias_ != nullptr && block.k == 0 ? bias_ + block.j + j : nullptr,
                        .add = g_.add || block.k > 0,
                        .finish = finish,
                        .operand = beside(g_.operand),
                        .activation = beside(g_.activation),
                        .ld_beside = g_.ld_beside,
                        .side = &side_};
        const std::int64_t vectors = (columns + W - 1) / W;
        (transposed() ? kTiles<true> : kTiles<false>)[rows - 1][vectors - 1](tile);
        // The tile has just been written and is in the first-level cache.
        if (finish == Finish::gelu) {
          gelu_rows_slope(tile.activation, g_.ld_beside, tile.c, g_.ldc, rows, columns);
        }
      }
    }
  }

  const Gemm& g_;
  const float* a_;
  const float* b_;
  float* c_;
  const float* bias_;
  float* block_;
  float* next_block_;
  float* strips_[2];
  SideWork side_;
};

}  // namespace

std::int64_t gemm_scratch_floats() { return 2 * (kBlockFloats + kStripFloats); }

void gemm(const Gemm& g, const float* a, const float* b, float* c, const float* bias, float* scratch) {
  Product(g, a, b, c, bias, scratch).run();
}
#endif

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
