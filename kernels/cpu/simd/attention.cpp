// Causal attention in blocks, head by head. Scores of a block of queries against a block of keys live in the
// first cache level; the T x T matrix never exists. Forward keeps the running maximum and sum of
// FlashAttention (Dao et al. 2022, algorithm 1) and stores their log-sum-exp; backward recomputes the
// probabilities from it (FlashAttention-2, algorithm 2).
//
// A head is first packed into fp32 rows of Dp = D rounded up to whole vectors (zero-padded), which also
// converts 16-bit storage: every head width then runs the same full-vector code. The softmax scale is folded
// into q.
//
// [Note: below the diagonal]
// Products are computed in tiles of kTileRows rows. On the diagonal a tile of queries stops after the last
// key visible to one of its rows, and a tile of keys begins at the first query that sees its first key.
// Columns that a tile reads but a row does not see, at most kTileRows - 1, hold zeros.
//
// A head's rows are loaded from memory while the memory bus is otherwise idle: every tile prefetches a few
// rows of the next head.
#include "kernels/cpu/simd/matrix_tile.h"
#include "kernels/cpu/simd/row_reduce.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/transpose.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

// A block of scores is 48 KiB forward, backward two blocks of 24 KiB: P and dP.
constexpr std::int64_t kQueries = 48;        // a multiple of the tile's rows and of every W
constexpr std::int64_t kForwardKeys = 256;   // a multiple of every W
constexpr std::int64_t kBackwardKeys = 128;  // likewise, and of the tile's rows

SHARDSCOPE_INLINE std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
SHARDSCOPE_INLINE std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Scratch of one head, in floats. Rows of transposed matrices have length Tp: one cache line
/// more than T, because rows a power of two apart would map to few sets of the first-level
/// cache.
struct Layout {
  std::int64_t D, Dp, Tp;
  explicit Layout(const AttentionShape& s)
      : D(s.C / s.H), Dp(round_up(D, W)), Tp(round_up(s.T, 16 * kTileVectors) + 16) {}
  [[nodiscard]] std::int64_t rows() const { return Tp * Dp; }
  /// Forward: three matrices and a block's results and scores. Backward: six [T, Dp] and two [Dp, T]
  /// matrices, two score blocks, one number per query.
  [[nodiscard]] std::int64_t floats() const {
    const std::int64_t forward = 3 * rows() + kQueries * (Dp + kForwardKeys);
    const std::int64_t backward = 8 * rows() + 2 * kQueries * kBackwardKeys + Tp;
    return forward > backward ? forward : backward;
  }
};

/// Prefetches rows of `bytes` each that the next head reads and this one writes. At most 8 arrays: three
/// written (dq, dk, dv) and five read (q, k, v, dout, out). One row of each array in turn, so that all
/// advance equally; step() is cheap once no row is left.
class RowPrefetcher {
 public:
  RowPrefetcher(std::int64_t rows, std::int64_t bytes) : rows_(rows), bytes_(bytes) {}
  template <class Element>
  void read(const Element* first, std::int64_t stride) {
    parts_[count_++] = {reinterpret_cast<const char*>(first),
                        stride * static_cast<std::int64_t>(sizeof(Element)), false};
  }
  template <class Element>
  void write(const Element* first, std::int64_t stride) {
    read(first, stride);
    parts_[count_ - 1].write = true;
  }
  /// Prefetches `n` rows more, if there are any.
  [[gnu::always_inline]] void step(std::int64_t n) {
    for (; n > 0 && row_ < rows_ && count_ > 0; --n) {
      Part& part = parts_[next_];
      // __builtin_prefetch takes constants only; 1 requests the line in exclusive state.
      if (part.write) {
        for (std::int64_t at = 0; at < bytes_; at += 64) __builtin_prefetch(part.at + at, 1, 3);
      } else {
        for (std::int64_t at = 0; at < bytes_; at += 64) __builtin_prefetch(part.at + at, 0, 3);
      }
      part.at += part.stride;
      if (++next_ == count_) {
        next_ = 0;
        ++row_;
      }
    }
  }

 private:
  struct Part {
    const char* at;
    std::int64_t stride;
    bool write;
  };
  Part parts_[8];
  std::int64_t count_ = 0, next_ = 0, row_ = 0;
  std::int64_t rows_, bytes_;
};

/// dst[T, Dp] = src[t * stride + 0..D) * factor. load_partial zero-pads the
/// head's columns: they add nothing to a product, and their results are
/// zeros.
template <class S>
[[gnu::always_inline]] inline void pack(float* dst, const typename S::Storage* src, std::int64_t T,
                                        std::int64_t stride, const Layout& l, float factor) {
  for (std::int64_t t = 0; t < T; ++t) {
    const auto* from = src + t * stride;
    float* to = dst + t * l.Dp;
    std::int64_t i = 0;
    for (; i + W <= l.D; i += W) store(to + i, S::load(from + i) * factor);
    if (i < l.D) store(to + i, load_partial<S>(from + i, l.D - i) * factor);
  }
}

/// dst[t * stride + 0..D) = src[T, Dp] * factor. Rounded once to the storage type; the padding is not
/// stored.
template <class S>
[[gnu::always_inline]] inline void unpack(typename S::Storage* dst, const float* src, std::int64_t T,
                                          std::int64_t stride, const Layout& l, float factor) {
  for (std::int64_t t = 0; t < T; ++t) {
    auto* to = dst + t * stride;
    const float* from = src + t * l.Dp;
    std::int64_t i = 0;
    for (; i + W <= l.D; i += W) S::store(to + i, load(from + i) * factor);
    if (i < l.D) store_partial<S>(to + i, load(from + i) * factor, l.D - i);
  }
}

/// dst[Dp, Tp] = src[t * stride + 0..D) transposed, zeros after column T (so that scores of nonexistent keys
/// are finite).
template <class S>
[[gnu::always_inline]] inline void pack_transposed(float* dst, const typename S::Storage* src, std::int64_t T,
                                                   std::int64_t stride, const Layout& l) {
  constexpr std::int64_t kStrip = 16;  // a multiple of every W
  for (std::int64_t t = 0; t < round_up(T, kStrip); t += W) {
    const std::int64_t count = T - t < W ? T - t : W;
    for (std::int64_t d = 0; d < l.Dp; d += W) {
      vf x[W];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < W; ++i) {
        const auto* from = src + (t + i) * stride + d;
        // Rows of 16-bit storage are converted here; a nonexistent row is not read.
        x[i] = i >= count ? vf{} : d + W <= l.D ? S::load(from) : load_partial<S>(from, l.D - d);
      }
      transpose(x);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < W; ++i) store(dst + (d + i) * l.Tp + t, x[i]);
    }
  }
}

/// Visibility of a block of keys to a block of queries: row r sees the first `visible` + r of `keys` columns.
/// Positions are relative to the blocks. `visible` is at most 0 if the first queries precede the block's
/// first key: such rows see nothing in this block.
struct CausalMask {
  std::int64_t rows, keys, visible;
  CausalMask(std::int64_t query, std::int64_t rows_of_block, std::int64_t key, std::int64_t most)
      : rows(rows_of_block), keys(least(most, query + rows_of_block - key)), visible(query + 1 - key) {}
  // Keys that row r sees; 0 or less: none.
  [[nodiscard]] std::int64_t of_row(std::int64_t r) const { return least(keys, visible + r); }
  // Rows of the tile that begins at row r.
  [[nodiscard]] std::int64_t tile_rows(std::int64_t r) const { return least(kTileRows, rows - r); }
  /// Columns visible to the tile of queries that begins at row r.
  [[nodiscard]] std::int64_t of_tile(std::int64_t r) const { return of_row(r + tile_rows(r) - 1); }
  /// The first row that sees column `key`.
  [[nodiscard]] std::int64_t first_row(std::int64_t key) const {
    return key < visible ? 0 : key + 1 - visible;
  }
  /// Columns of row r that any tile reads.
  [[nodiscard]] std::int64_t touched(std::int64_t r) const {
    return least(keys, visible + r + kTileRows - 1);
  }
};

/// scores[rows, keys] = q k^T, for each tile the columns that it sees; leading dimension ld.
/// k_transposed is [Dp, Tp] from the block's first key on. All tiles of rows use a panel of keys (depth
/// x kPanel floats) before the next one. Scores beyond a tile's visible columns are not written and
/// never read.
SHARDSCOPE_INLINE void score_block(const CausalMask& causal, std::int64_t depth, const float* q,
                                   const float* k_transposed, const Layout& l, float* scores, std::int64_t ld,
                                   RowPrefetcher& ahead) {
  constexpr std::int64_t kPanel = kTileVectors * W;
  for (std::int64_t j = 0; j < causal.keys; j += kPanel) {
    for (std::int64_t r = 0; r < causal.rows; r += kTileRows) {
      const std::int64_t columns = least(kPanel, causal.of_tile(r) - j);
      if (columns <= 0) continue;
      multiply_rows(causal.tile_rows(r), (columns + W - 1) / W, depth, {q + r * l.Dp, l.Dp, 1},
                    k_transposed + j, l.Tp, scores + r * ld + j, ld, Sum::set);
      ahead.step(3);
    }
  }
}

/// result[rows, Dp] (+)= weights[rows, keys] values[keys, Dp]. The sum over keys stops after the last
/// key visible to a row of the tile; weights between a row's own last key and that one are zeros
/// (touched()).
SHARDSCOPE_INLINE void weighted_rows(const CausalMask& causal, const float* weights, std::int64_t ld,
                                     const float* values, const Layout& l, float* result, Sum sum,
                                     RowPrefetcher& ahead) {
  for (std::int64_t r = 0; r < causal.rows; r += kTileRows) {
    multiply_rows(causal.tile_rows(r), l.Dp / W, causal.of_tile(r), {weights + r * ld, ld, 1}, values, l.Dp,
                  result + r * l.Dp, l.Dp, sum);
    ahead.step(3);
  }
}

/// result[keys, Dp] += weights[rows, keys]^T values[rows, Dp]. weights is read transposed in
/// place: consecutive keys are the rows of the product. The sum begins at the first query that
/// sees the tile's first key; weights of later keys of the tile that this query does not see are
/// zero.
SHARDSCOPE_INLINE void weighted_columns(const CausalMask& causal, const float* weights, std::int64_t ld,
                                        const float* values, const Layout& l, float* result,
                                        RowPrefetcher& ahead) {
  for (std::int64_t key = 0; key < causal.keys; key += kTileRows) {
    const std::int64_t first = causal.first_row(key);
    multiply_rows(least(kTileRows, causal.keys - key), l.Dp / W, causal.rows - first,
                  {weights + first * ld + key, 1, ld}, values + first * l.Dp, l.Dp, result + key * l.Dp, l.Dp,
                  Sum::add);
    ahead.step(1);
  }
}

/// Sets lanes at or after `visible` to `other`; `visible` is relative to this vector's first lane.
SHARDSCOPE_INLINE vf mask(vf x, std::int64_t visible, float other) {
  return lane_index() < static_cast<std::int32_t>(visible) ? x : set1(other);
}

/// Running state of a block's queries: the largest score, the sum of exp(score - largest), and in
/// `lanes` each row's partial reduction before it is reduced over lanes. kQueries is a multiple of W,
/// so that whole vectors of rows can be reduced; rows after the last query hold values that are never
/// read.
struct RunningSoftmax {
  alignas(64) float top[kQueries];
  alignas(64) float total[kQueries];
  alignas(64) float lanes[kQueries][W];
};

/// Converts scores to exp(score - running maximum) and rescales sums and results of earlier blocks to the new
/// maximum. In passes over all rows: one row's latency overlaps the work on others.
SHARDSCOPE_INLINE void softmax_block(float* scores, const CausalMask& causal, Sum sum, RunningSoftmax& state,
                                     float* result, const Layout& l) {
  for (std::int64_t r = 0; r < causal.rows; ++r) {
    float* s = scores + r * kForwardKeys;
    const std::int64_t visible = causal.of_row(r);
    // Pass 1: each row's largest visible score, lane by lane. In the last vector, invisible columns become
    // -inf, so that pass 3 makes them 0 without a mask.
    vf largest = set1(-__builtin_inff());
    std::int64_t i = 0;
    for (; i + W <= visible; i += W) largest = max(load(s + i), largest);
    if (i < visible) {
      const vf x = mask(load(s + i), visible - i, -__builtin_inff());
      store(s + i, x);
      largest = max(x, largest);
    }
    store(state.lanes[r], largest);
  }
  for (std::int64_t r = 0; r < causal.rows; r += W) {
    // Pass 2: W rows at once. `now` is the new maximum; earlier sums are scaled by exp(old - new). A row that
    // sees nothing of this block has -inf in its lanes and keeps its maximum.
    vf now = largest_of_rows(state.lanes + r);
    if (sum == Sum::set) {  // the first block always holds a visible key, position 0
      store(state.total + r, vf{});
    } else {
      const vf before = load(state.top + r);
      now = max(now, before);
      const vf shrink = exp_of_score(before - now);
      store(state.total + r, load(state.total + r) * shrink);
      for (std::int64_t row = r; row < least(r + W, causal.rows); ++row) {
        for (std::int64_t d = 0; d < l.Dp; d += W) {
          store(result + row * l.Dp + d, load(result + row * l.Dp + d) * shrink[row - r]);
        }
      }
    }
    store(state.top + r, now);
  }
  for (std::int64_t r = 0; r < causal.rows; ++r) {
    float* s = scores + r * kForwardKeys;
    // Pass 3: the exponentials and their sum, then zeros up to the last column that a tile reads.
    const vf shift = set1(state.top[r]);
    vf added{};
    std::int64_t i = 0;
    for (const std::int64_t visible = causal.of_row(r); i < visible; i += W) {
      const vf p = exp_of_score(load(s + i) - shift);
      store(s + i, p);
      added += p;
    }
    for (; i < causal.touched(r); i += W) store(s + i, vf{});
    store(state.lanes[r], added);
  }
  for (std::int64_t r = 0; r < causal.rows; r += W) {
    store(state.total + r, load(state.total + r) + sums_of_rows(state.lanes + r));
  }
}

template <class S>
void forward_head(typename S::Storage* out, float* logsumexp, const typename S::Storage* qkv, std::int64_t T,
                  std::int64_t C, const Layout& l, float* scratch, RowPrefetcher ahead) {
  // q, v [T, Dp], k_transposed [Dp, Tp], result [kQueries, Dp], scores [kQueries, kForwardKeys].
  float* q = scratch;
  float* v = q + l.rows();
  float* k_transposed = v + l.rows();
  float* result = k_transposed + l.rows();
  float* scores = result + kQueries * l.Dp;
  pack<S>(q, qkv, T, 3 * C, l, 1.0F / __builtin_sqrtf(static_cast<float>(l.D)));
  pack<S>(v, qkv + 2 * C, T, 3 * C, l, 1.0F);
  pack_transposed<S>(k_transposed, qkv + C, T, 3 * C, l);

  // Queries outside, keys inside: a block's result stays in cache until it is complete, and is stored once.
  // The first block of keys sets maximum, sum and result, so nothing of the previous queries remains.
  RunningSoftmax state{};
  for (std::int64_t query = 0; query < T; query += kQueries) {
    const std::int64_t rows = least(T - query, kQueries);
    for (std::int64_t key = 0; key < query + rows; key += kForwardKeys) {
      const CausalMask causal(query, rows, key, kForwardKeys);
      const Sum sum = key == 0 ? Sum::set : Sum::add;
      score_block(causal, l.D, q + query * l.Dp, k_transposed + key, l, scores, kForwardKeys, ahead);
      softmax_block(scores, causal, sum, state, result, l);
      weighted_rows(causal, scores, kForwardKeys, v + key * l.Dp, l, result, sum, ahead);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      // Natural logarithm of the sum of exp(score), scores scaled.
      logsumexp[query + r] = state.top[r] + __builtin_logf(state.total[r]);
      unpack<S>(out + (query + r) * C, result + r * l.Dp, 1, C, l, 1.0F / state.total[r]);
    }
  }
}

/// Converts scores to probabilities P, and dP to dscore = P * (dP - delta). P = exp(score - logsumexp) needs
/// no maximum and no sum: forward stored both in logsumexp. Both blocks are zeros from the last visible key
/// up to the last column that a tile reads.
SHARDSCOPE_INLINE void softmax_gradient(float* probability, float* dscore, const CausalMask& causal,
                                        const float* logsumexp, const float* delta) {
  for (std::int64_t r = 0; r < causal.rows; ++r) {
    float* p_row = probability + r * kBackwardKeys;
    float* d_row = dscore + r * kBackwardKeys;
    const std::int64_t visible = causal.of_row(r);
    const vf shift = set1(logsumexp[r]);
    const vf centre = set1(delta[r]);
    std::int64_t i = 0;
    for (; i + W <= visible; i += W) {
      const vf p = exp_of_score(load(p_row + i) - shift);
      store(p_row + i, p);
      store(d_row + i, p * (load(d_row + i) - centre));
    }
    if (i < visible) {
      const vf p = exp_of_score(mask(load(p_row + i), visible - i, -__builtin_inff()) - shift);
      store(p_row + i, p);
      // P is 0 outside the mask, but 0 * (dP - delta) is NaN if dP is not finite: masked again.
      store(d_row + i, mask(p * (load(d_row + i) - centre), visible - i, 0.0F));
      i += W;
    }
    for (; i < causal.touched(r); i += W) {
      store(p_row + i, vf{});
      store(d_row + i, vf{});
    }
  }
}

template <class S>
void backward_head(typename S::Storage* dqkv, const typename S::Storage* dout, const typename S::Storage* out,
                   const typename S::Storage* qkv, const float* logsumexp, std::int64_t T, std::int64_t C,
                   const Layout& l, float* scratch, RowPrefetcher ahead) {
  // q, k, dy, dq, dk, dv [T, Dp]; k_transposed, v_transposed [Dp, Tp]; P and dscore [kQueries,
  // kBackwardKeys]; delta [T].
  float* q = scratch;
  float* k = q + l.rows();
  float* dy = k + l.rows();
  float* dq = dy + l.rows();
  float* dk = dq + l.rows();
  float* dv = dk + l.rows();
  float* k_transposed = dv + l.rows();
  float* v_transposed = k_transposed + l.rows();
  float* probability = v_transposed + l.rows();
  float* dscore = probability + kQueries * kBackwardKeys;
  float* delta = dscore + kQueries * kBackwardKeys;

  const float factor = 1.0F / __builtin_sqrtf(static_cast<float>(l.D));
  pack<S>(q, qkv, T, 3 * C, l, factor);
  pack<S>(k, qkv + C, T, 3 * C, l, 1.0F);
  pack_transposed<S>(k_transposed, qkv + C, T, 3 * C, l);
  pack_transposed<S>(v_transposed, qkv + 2 * C, T, 3 * C, l);
  pack<S>(dy, dout, T, C, l, 1.0F);
  // delta = rowsum(dout * out) equals the sum over keys of P dP (FlashAttention-2, algorithm 2, line 4).
  for (std::int64_t t = 0; t < T; ++t) {
    const float* g = dy + t * l.Dp;
    const auto* y = out + t * C;
    vf s{};
    std::int64_t i = 0;
    for (; i + W <= l.D; i += W) s = fma(load(g + i), S::load(y + i), s);
    if (i < l.D) s = fma(load(g + i), load_partial<S>(y + i, l.D - i), s);
    delta[t] = sum(s);
  }
  // dk and dv are adjacent. Every block of queries adds to them; dq is set by its first block of
  // keys.
  __builtin_memset(dk, 0, static_cast<std::size_t>(2 * l.rows()) * sizeof(float));

  for (std::int64_t query = 0; query < T; query += kQueries) {
    const std::int64_t rows = least(T - query, kQueries);
    for (std::int64_t key = 0; key < query + rows; key += kBackwardKeys) {
      const CausalMask causal(query, rows, key, kBackwardKeys);
      // S = q k^T, dP = dout v^T, both up to the last visible key; then dv += P^T dout, dk += dS^T q, dq +=
      // dS k. Every element is summed in ascending order, on one thread.
      const float* const q_block = q + query * l.Dp;
      const float* const dy_block = dy + query * l.Dp;
      score_block(causal, l.D, q_block, k_transposed + key, l, probability, kBackwardKeys, ahead);
      score_block(causal, l.D, dy_block, v_transposed + key, l, dscore, kBackwardKeys, ahead);
      softmax_gradient(probability, dscore, causal, logsumexp + query, delta + query);
      // q includes the softmax scale, so dk needs none; dq is scaled when it is stored.
      weighted_columns(causal, probability, kBackwardKeys, dy_block, l, dv + key * l.Dp, ahead);
      weighted_columns(causal, dscore, kBackwardKeys, q_block, l, dk + key * l.Dp, ahead);
      weighted_rows(causal, dscore, kBackwardKeys, k + key * l.Dp, l, dq + query * l.Dp,
                    key == 0 ? Sum::set : Sum::add, ahead);
    }
  }
  unpack<S>(dqkv, dq, T, 3 * C, l, factor);
  unpack<S>(dqkv + C, dk, T, 3 * C, l, 1.0F);
  unpack<S>(dqkv + 2 * C, dv, T, 3 * C, l, 1.0F);
}

}  // namespace

// Scratch for one head at a time.
std::int64_t attention_scratch_floats(const AttentionShape& shape) { return Layout(shape).floats(); }

void attention_forward(void* out, float* logsumexp, const void* qkv, DType type, const AttentionShape& shape,
                       std::int64_t first, std::int64_t last, float* scratch) {
  const Layout l(shape);
  with_type(type, [&](auto tag) {
    using S = decltype(tag);
    using Storage = typename S::Storage;
    const std::int64_t C = shape.C;
    // Head i: batch i / H, columns of head i % H. Offsets in elements of an array [B,T,C]; 3 times the row in
    // [B,T,3C].
    const auto row = [&](std::int64_t i) { return i / shape.H * shape.T * C; };
    const auto column = [&](std::int64_t i) { return i % shape.H * l.D; };
    const auto input = [&](std::int64_t i) {
      return static_cast<const Storage*>(qkv) + 3 * row(i) + column(i);
    };
    for (std::int64_t i = first; i < last; ++i) {
      // Rows that this head writes and the next one reads.
      RowPrefetcher ahead(shape.T, l.D * static_cast<std::int64_t>(sizeof(Storage)));
      ahead.write(static_cast<Storage*>(out) + row(i) + column(i), C);
      if (i + 1 < last) {
        for (std::int64_t part = 0; part < 3; ++part) ahead.read(input(i + 1) + part * C, 3 * C);
      }
      forward_head<S>(static_cast<Storage*>(out) + row(i) + column(i), logsumexp + i * shape.T, input(i),
                      shape.T, C, l, scratch, ahead);
    }
  });
}

void attention_backward(void* dqkv, const void* dout, const void* out, const void* qkv, DType type,
                        const float* logsumexp, const AttentionShape& shape, std::int64_t first,
                        std::int64_t last, float* scratch) {
  const Layout l(shape);
  with_type(type, [&](auto tag) {
    using S = decltype(tag);
    using Storage = typename S::Storage;
    const std::int64_t C = shape.C;
    const auto at = [&](std::int64_t i) { return i / shape.H * shape.T * C; };
    const auto column = [&](std::int64_t i) { return i % shape.H * l.D; };
    const auto* const in = static_cast<const Storage*>(qkv);
    const auto* const y = static_cast<const Storage*>(out);
    const auto* const dy = static_cast<const Storage*>(dout);
    for (std::int64_t i = first; i < last; ++i) {
      RowPrefetcher ahead(shape.T, l.D * static_cast<std::int64_t>(sizeof(Storage)));
      for (std::int64_t part = 0; part < 3; ++part) {
        ahead.write(static_cast<Storage*>(dqkv) + 3 * at(i) + column(i) + part * C, 3 * C);
      }
      if (const std::int64_t next = i + 1; next < last) {
        for (std::int64_t part = 0; part < 3; ++part) {
          ahead.read(in + 3 * at(next) + column(next) + part * C, 3 * C);
        }
        ahead.read(dy + at(next) + column(next), C);
        ahead.read(y + at(next) + column(next), C);
      }
      backward_head<S>(static_cast<Storage*>(dqkv) + 3 * at(i) + column(i), dy + at(i) + column(i),
                       y + at(i) + column(i), in + 3 * at(i) + column(i), logsumexp + i * shape.T, shape.T, C,
                       l, scratch, ahead);
    }
  });
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
