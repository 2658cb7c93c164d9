// Causal attention in blocks, head by head. Scores of a block of queries against a block of keys live in the
// first cache level; the T x T matrix never exists. Forward keeps the running maximum and sum of
// FlashAttention (Dao et al. 2022, algorithm 1) and stores their log-sum-exp; backward recomputes the
// probabilities from it (FlashAttention-2, algorithm 2).
//
// A head is first packed into fp32 rows of Dp = D rounded up to whole vectors (zeros behind), which is also
// where 16-bit storage is converted: any head width then runs the same full-vector code. The softmax scale is
// folded into q.
#include "kernels/cpu/simd/matrix_tile.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/transpose.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

constexpr std::int64_t kQueries = 24;  // a multiple of the tile's rows
constexpr std::int64_t kKeys = 128;    // a multiple of every W

SHARDSCOPE_INLINE std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// Scratch of one head. Rows of transposed matrices are Tp long: one cache line more than T needs, because
/// rows a power of two apart would fall on few sets of the first-level cache.
struct Layout {
  std::int64_t D, Dp, Tp;
  explicit Layout(const AttentionShape& s)
      : D(s.C / s.H), Dp(round_up(D, W)), Tp(round_up(s.T, kKeys) + 16) {}
  [[nodiscard]] std::int64_t rows() const { return Tp * Dp; }
  /// Seven [T, Dp] and two [Dp, T] matrices of backward, two score blocks, one number per query.
  [[nodiscard]] std::int64_t floats() const { return 9 * rows() + 2 * kQueries * kKeys + Tp + 64; }
};

/// dst[T, Dp] = src[t * stride + 0..D) * factor.
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

/// dst[t * stride + 0..D) = src[T, Dp] * factor.
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

/// dst[Dp, Tp] = src[t * stride + 0..D) transposed, zeros behind column T (so that scores of keys that do not
/// exist are finite).
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
        x[i] = i >= count ? vf{} : d + W <= l.D ? S::load(from) : load_partial<S>(from, l.D - d);
      }
      transpose(x);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < W; ++i) store(dst + (d + i) * l.Tp + t, x[i]);
    }
  }
}

/// Keys of the block from `key` that the query block [query, query_end) can see at all.
SHARDSCOPE_INLINE std::int64_t keys_in(std::int64_t key, std::int64_t query_end) {
  return query_end - key < kKeys ? query_end - key : kKeys;
}

/// Lanes at or behind `visible` become `other`; `visible` counts from this vector's first lane.
SHARDSCOPE_INLINE vf mask(vf x, std::int64_t visible, float other) {
  return lane_index() < static_cast<std::int32_t>(visible) ? x : set1(other);
}

/// Numbers of the rows of a block, in whole vectors.
constexpr std::int64_t kRowLanes = (kQueries + 15) / 16 * 16;

/// Scores to exp(score - maximum so far), and the maxima, sums and results of the blocks before brought to
/// it. Row r sees `seen` + r of the columns. In passes over all rows: what a row waits for (the maximum over
/// lanes, then an exponential) the others fill.
SHARDSCOPE_INLINE void softmax_block(float* scores, std::int64_t rows, std::int64_t columns,
                                     std::int64_t seen, bool first_block, float* top, float* total,
                                     float* result, const Layout& l) {
  alignas(64) float block_top[kRowLanes] = {};
  for (std::int64_t r = 0; r < rows; ++r) {
    float* s = scores + r * kKeys;
    vf largest = set1(-__builtin_inff());
    std::int64_t i = 0;
    for (; i + W <= seen + r && i < columns; i += W) largest = max(load(s + i), largest);
    for (; i < columns; i += W) {
      const vf x = mask(load(s + i), seen + r - i, -__builtin_inff());
      store(s + i, x);
      largest = max(x, largest);
    }
    block_top[r] = max_lane(largest);
  }
  if (first_block) {  // it always holds a visible key, position 0
    for (std::int64_t r = 0; r < kRowLanes; r += W) {
      store(top + r, load(block_top + r));
      store(total + r, vf{});
    }
  } else {
    alignas(64) float shrink[kRowLanes];
    for (std::int64_t r = 0; r < kRowLanes; r += W) {
      const vf before = load(top + r);
      const vf now = max(load(block_top + r), before);
      store(top + r, now);
      const vf factor = exp(before - now);
      store(shrink + r, factor);
      store(total + r, load(total + r) * factor);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t d = 0; d < l.Dp; d += W) {
        store(result + r * l.Dp + d, load(result + r * l.Dp + d) * shrink[r]);
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    float* s = scores + r * kKeys;
    const float shift = top[r];
    vf added{};
    for (std::int64_t i = 0; i < columns; i += W) {
      const vf p = exp(load(s + i) - shift);
      store(s + i, p);
      added += p;
    }
    total[r] += sum(added);
  }
}

template <class S>
void forward_head(typename S::Storage* out, float* logsumexp, const typename S::Storage* qkv, std::int64_t T,
                  std::int64_t C, const Layout& l, float* scratch) {
  float* q = scratch;
  float* v = q + l.rows();
  float* k_transposed = v + l.rows();
  float* result = k_transposed + l.rows();
  float* scores = result + kQueries * l.Dp;
  pack<S>(q, qkv, T, 3 * C, l, 1.0F / __builtin_sqrtf(static_cast<float>(l.D)));
  pack<S>(v, qkv + 2 * C, T, 3 * C, l, 1.0F);
  pack_transposed<S>(k_transposed, qkv + C, T, 3 * C, l);

  alignas(64) float top[kRowLanes];
  alignas(64) float total[kRowLanes];
  for (std::int64_t query = 0; query < T; query += kQueries) {
    const std::int64_t rows = T - query < kQueries ? T - query : kQueries;
    for (std::int64_t key = 0; key < query + rows; key += kKeys) {
      const std::int64_t keys = keys_in(key, query + rows);
      const std::int64_t columns = round_up(keys, W);
      multiply<false>(rows, columns, l.D, {q + query * l.Dp, l.Dp, 1}, k_transposed + key, l.Tp, scores,
                      kKeys);
      softmax_block(scores, rows, columns, query + 1 - key, key == 0, top, total, result, l);
      const Strided p{scores, kKeys, 1};
      if (key == 0) {
        multiply<false>(rows, l.Dp, keys, p, v + key * l.Dp, l.Dp, result, l.Dp);
      } else {
        multiply<true>(rows, l.Dp, keys, p, v + key * l.Dp, l.Dp, result, l.Dp);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      logsumexp[query + r] = top[r] + __builtin_logf(total[r]);
      unpack<S>(out + (query + r) * C, result + r * l.Dp, 1, C, l, 1.0F / total[r]);
    }
  }
}

template <class S>
void backward_head(typename S::Storage* dqkv, const typename S::Storage* dout, const typename S::Storage* out,
                   const typename S::Storage* qkv, const float* logsumexp, std::int64_t T, std::int64_t C,
                   const Layout& l, float* scratch) {
  float* q = scratch;
  float* k = q + l.rows();
  float* dy = k + l.rows();
  float* dq = dy + l.rows();
  float* dk = dq + l.rows();
  float* dv = dk + l.rows();
  float* y = dv + l.rows();
  float* k_transposed = y + l.rows();
  float* v_transposed = k_transposed + l.rows();
  float* probability = v_transposed + l.rows();
  float* dscore = probability + kQueries * kKeys;
  float* delta = dscore + kQueries * kKeys;

  const float factor = 1.0F / __builtin_sqrtf(static_cast<float>(l.D));
  pack<S>(q, qkv, T, 3 * C, l, factor);
  pack<S>(k, qkv + C, T, 3 * C, l, 1.0F);
  pack_transposed<S>(k_transposed, qkv + C, T, 3 * C, l);
  pack_transposed<S>(v_transposed, qkv + 2 * C, T, 3 * C, l);
  pack<S>(dy, dout, T, C, l, 1.0F);
  pack<S>(y, out, T, C, l, 1.0F);
  // delta = rowsum(dout * out) stands for the sum over keys of P dP (FlashAttention-2, algorithm 2, line 4).
  for (std::int64_t t = 0; t < T; ++t) {
    vf s{};
    for (std::int64_t i = 0; i < l.Dp; i += W) s = fma(load(dy + t * l.Dp + i), load(y + t * l.Dp + i), s);
    delta[t] = sum(s);
  }
  __builtin_memset(dk, 0, static_cast<std::size_t>(2 * l.rows()) * sizeof(float));

  for (std::int64_t query = 0; query < T; query += kQueries) {
    const std::int64_t rows = T - query < kQueries ? T - query : kQueries;
    for (std::int64_t key = 0; key < query + rows; key += kKeys) {
      const std::int64_t keys = keys_in(key, query + rows);
      const std::int64_t columns = round_up(keys, W);
      multiply<false>(rows, columns, l.D, {q + query * l.Dp, l.Dp, 1}, k_transposed + key, l.Tp, probability,
                      kKeys);
      multiply<false>(rows, columns, l.D, {dy + query * l.Dp, l.Dp, 1}, v_transposed + key, l.Tp, dscore,
                      kKeys);
      for (std::int64_t r = 0; r < rows; ++r) {
        float* p_row = probability + r * kKeys;
        float* d_row = dscore + r * kKeys;
        const std::int64_t seen = query + r + 1 - key;
        const float shift = logsumexp[query + r];
        const float centre = delta[query + r];
        std::int64_t i = 0;
        for (; i + W <= seen && i < columns; i += W) {
          const vf p = exp(load(p_row + i) - shift);
          store(p_row + i, p);
          store(d_row + i, p * (load(d_row + i) - centre));
        }
        for (; i < columns; i += W) {
          const vf p = mask(exp(load(p_row + i) - shift), seen - i, 0.0F);
          store(p_row + i, p);
          store(d_row + i, mask(p * (load(d_row + i) - centre), seen - i, 0.0F));
        }
      }
      // q carries the softmax scale, so dk needs none; dq takes it when it is stored.
      multiply<true>(keys, l.Dp, rows, {probability, 1, kKeys}, dy + query * l.Dp, l.Dp, dv + key * l.Dp,
                     l.Dp);
      multiply<true>(keys, l.Dp, rows, {dscore, 1, kKeys}, q + query * l.Dp, l.Dp, dk + key * l.Dp, l.Dp);
      const Strided ds{dscore, kKeys, 1};
      if (key == 0) {
        multiply<false>(rows, l.Dp, keys, ds, k + key * l.Dp, l.Dp, dq + query * l.Dp, l.Dp);
      } else {
        multiply<true>(rows, l.Dp, keys, ds, k + key * l.Dp, l.Dp, dq + query * l.Dp, l.Dp);
      }
    }
  }
  unpack<S>(dqkv, dq, T, 3 * C, l, factor);
  unpack<S>(dqkv + C, dk, T, 3 * C, l, 1.0F);
  unpack<S>(dqkv + 2 * C, dv, T, 3 * C, l, 1.0F);
}

}  // namespace

std::int64_t attention_scratch_floats(const AttentionShape& shape) { return Layout(shape).floats(); }

void attention_forward(void* out, float* logsumexp, const void* qkv, DType type, const AttentionShape& shape,
                       std::int64_t first, std::int64_t last, float* scratch) {
  const Layout l(shape);
  with_type(type, [&](auto tag) {
    using S = decltype(tag);
    using Storage = typename S::Storage;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t b = i / shape.H;
      const std::int64_t column = i % shape.H * l.D;
      forward_head<S>(static_cast<Storage*>(out) + b * shape.T * shape.C + column, logsumexp + i * shape.T,
                      static_cast<const Storage*>(qkv) + b * shape.T * 3 * shape.C + column, shape.T, shape.C,
                      l, scratch);
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
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t b = i / shape.H;
      const std::int64_t column = i % shape.H * l.D;
      const std::int64_t row = b * shape.T * shape.C + column;
      const std::int64_t row3 = b * shape.T * 3 * shape.C + column;
      backward_head<S>(static_cast<Storage*>(dqkv) + row3, static_cast<const Storage*>(dout) + row,
                       static_cast<const Storage*>(out) + row, static_cast<const Storage*>(qkv) + row3,
                       logsumexp + i * shape.T, shape.T, shape.C, l, scratch);
    }
  });
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
