// Causal attention on tensor cores for 16-bit types and heads of 64 or 128, after FlashAttention-2 (Dao
// 2023): a warp has 16 rows, scores are in registers, T x T is never stored. Backward has two kernels, one
// that loops over queries for a block of keys and one that loops over keys for a block of queries: this
// recomputes the scores once more than atomic additions to dQ would, but gives the same bits in every run.
//
// [Note: a step]
// The rows owned by a block (Q forward; K and V, or Q and dout, backward) stay in shared memory. The other
// side passes through two buffers: while step i is computed, the copies of step i + 1 are in flight. A step:
//   issue the copies of the next step;
//   wait for this thread's copies of this step; barrier: those of all threads have arrived;
//   compute; barrier: all warps have read the buffer, the copies of step i + 2 may overwrite it.
// There is no other barrier: a warp computes its 16 rows independently.
//
// Shared memory of a block: forward 48 KiB (heads of 64) or 80 KiB (128), backward 64 KiB or 96 KiB.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/mma.cuh"

namespace shardscope::kernels::cuda {
namespace {

// exp(x) is computed as exp2(x log2 e): the multiplication is part of an existing multiply-add.
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;
constexpr int kStep = 64;  ///< rows of the side that is looped over
// A warp's 16 x 8 tiles of a step's scores: 4 floats of each per lane.
constexpr int kTiles = kStep / 8;

template <int D>
struct Shape {
  static constexpr int kWarps = D == 64 ? 8 : 4;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kBlock = kWarps * 16;  ///< rows a block owns
};

/// Start of head h of sequence b in q, k and v, and the stride of tokens. Strides and offsets are in
/// elements. The grid is (blocks of rows, B * H).
template <class T>
struct Head {
  const T* q;
  const T* k;
  const T* v;
  std::int64_t stride;      ///< of qkv
  std::int64_t out_offset;  ///< of the head in arrays [B,T,C]
  std::int64_t out_stride;
  std::int64_t statistics;  ///< of the head in arrays [B,H,T]
};
template <class T, int D>
__device__ __forceinline__ Head<T> head_of(const T* qkv, int length, int H) {
  const int h = static_cast<int>(blockIdx.y) % H;
  const int b = static_cast<int>(blockIdx.y) / H;
  const std::int64_t C = std::int64_t{H} * D;
  const T* q = qkv + std::int64_t{b} * length * 3 * C + h * D;
  return {q,
          q + C,
          q + 2 * C,
          3 * C,
          std::int64_t{b} * length * C + h * D,
          C,
          (std::int64_t{b} * H + h) * length};
}

/// The side that is looped over: rows of two arrays, kStep of them per step, two steps in shared memory. See
/// [Note: a step].
template <class T, int D>
struct Pairs {
  T* shared;  ///< four tiles
  const T* first;
  std::int64_t first_stride;
  const T* second;
  std::int64_t second_stride;
  int rows;

  /// Even and odd steps use separate buffers.
  __device__ __forceinline__ Tile<T, D> tile(int step, int which) const {
    return {shared + (step % 2 * 2 + which) * kStep * D};
  }
  /// Issues the copies of a step as one group; does not wait. Rows after the last are zeros.
  __device__ __forceinline__ void fetch(int step) const {
    constexpr int kThreads = Shape<D>::kThreads;
    copy_rows<kStep, kThreads>(tile(step, 0), first, first_stride, step * kStep, rows);
    copy_rows<kStep, kThreads>(tile(step, 1), second, second_stride, step * kStep, rows);
    commit_copies();
  }
  /// use(step, tile of the first array, tile of the second) for steps [begin, end), at least one. Earlier
  /// copies that are not yet committed have completed when it is first called. All threads of the block call
  /// it with the same bounds: it contains barriers.
  template <class Use>
  __device__ __forceinline__ void walk(int begin, int end, const Use& use) const {
    fetch(begin);
    for (int step = begin; step < end; ++step) {
      if (step + 1 < end) {
        fetch(step + 1);
        // The group just committed may stay in flight; all earlier ones, those of this step, are complete.
        wait_copies<1>();
      } else {
        wait_copies<0>();
      }
      __syncthreads();
      use(step, tile(step, 0), tile(step, 1));
      __syncthreads();  // the next fetch overwrites the buffer of this step
    }
  }
};

template <int N>
__device__ __forceinline__ void clear(FragmentC (&c)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) c[j] = {};
}

/// Rows g and g + 8 of a warp's 16 x D result, times their factors, rounded once. Rows from `rows` on are not
/// written. A lane stores two columns, 4 bytes; the four lanes of a row store 16 contiguous bytes.
template <class T, int D>
__device__ __forceinline__ void store_rows(T* to, std::int64_t stride, int first, int rows,
                                           const FragmentC (&c)[D / 8], float low, float high) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = first + lane / 4;
#pragma unroll
  for (int j = 0; j < D / 8; ++j) {
    const int column = j * 8 + lane % 4 * 2;
    if (row < rows) {
      *reinterpret_cast<unsigned*>(to + row * stride + column) = pack2(c[j].x[0] * low, c[j].x[1] * low, T{});
    }
    if (row + 8 < rows) {
      *reinterpret_cast<unsigned*>(to + (row + 8) * stride + column) =
          pack2(c[j].x[2] * high, c[j].x[3] * high, T{});
    }
  }
}

/// out[B,length,C] and logsumexp[B,H,length] from qkv[B,length,3C], for Shape<D>::kBlock queries of one head:
/// block (x, b * H + h) of the grid. D is the head's width, C = H D.
///
/// Online softmax: `top` is the largest score of a row so far; o and `sum` are relative to it and are scaled
/// by exp(old top - new top) when it grows. The four lanes of a row (lane / 4) hold 16 of its 64 scores each
/// and have the same `top` in every step; they add up `sum` only at the end, since all four scale it by the
/// same factor. `sum` is of the fp32 weights; the product with V uses weights rounded to 16 bits.
template <class T, int D>
__global__ void __launch_bounds__(Shape<D>::kThreads)
    forward_kernel(T* out, float* logsumexp, const T* qkv, int length, int H, float scale) {
  using S = Shape<D>;
  extern __shared__ __align__(128) unsigned char shared[];
  T* base = reinterpret_cast<T*>(shared);
  const Tile<T, D> q{base};
  const Head<T> head = head_of<T, D>(qkv, length, H);
  // Shared memory: Q (kBlock, D), then two buffers of K (kStep, D) and V (kStep, D).
  const Pairs<T, D> keys{base + S::kBlock * D, head.k, head.stride, head.v, head.stride, length};
  // The longest rows first, so that short ones fill the tail of the grid.
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x) * S::kBlock;
  const int warp_row = static_cast<int>(threadIdx.x / 32) * 16;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = block + warp_row + lane / 4;  // and row + 8
  const int last = block + S::kBlock < length ? block + S::kBlock : length;
  const int steps = (last + kStep - 1) / kStep;

  // Not committed here: these copies belong to the first group that walk() commits and waits for.
  copy_rows<S::kBlock, S::kThreads>(q, head.q, head.stride, block, length);
  FragmentC o[D / 8];
  clear(o);
  float top[2] = {-INFINITY, -INFINITY};  // of raw scores
  float sum[2] = {0, 0};                  // this lane's columns only
  const float to_log2 = scale * kLog2E;
  keys.walk(0, steps, [&](int step, Tile<T, D> k, Tile<T, D> v) {
    FragmentC s[kTiles];
    clear(s);
    multiply_rows<kTiles>(s, q, warp_row, k);
    // Keys after the end of the sequence come after every query that is stored, so the mask covers them too.
    // The condition is equal on all lanes: only steps on the diagonal pay for the mask.
    const int first_key = step * kStep;
    if (first_key + kStep - 1 > block + warp_row) {  // some key comes after some query of this warp
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int key = first_key + j * 8 + lane % 4 * 2 + e % 2;
          if (key > row + e / 2 * 8) s[j].x[e] = -INFINITY;
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Elements 2 half and 2 half + 1 of a result are in row g + 8 half. Raw scores are compared: scale is
      // positive, so the maximum is the same.
      float most = top[half];
#pragma unroll
      for (int j = 0; j < kTiles; ++j) most = fmaxf(most, fmaxf(s[j].x[2 * half], s[j].x[2 * half + 1]));
      // Over the four lanes of the row, whose numbers differ in the two lowest bits.
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFU, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFU, most, 2));
      // Every row sees key 0 in step 0, so `most` is -inf only if all its scores are: -inf - -inf would be
      // NaN, exp2(-inf - 0) is 0.
      const float offset = most == -INFINITY ? 0.0F : most * to_log2;
      const float shrink = exp2f(fmaf(top[half], to_log2, -offset));
      top[half] = most;
      float added = 0;
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[j].x[e] = exp2f(fmaf(s[j].x[e], to_log2, -offset));
          added += s[j].x[e];
        }
      }
      sum[half] = fmaf(sum[half], shrink, added);
#pragma unroll
      for (int j = 0; j < D / 8; ++j) {
        o[j].x[2 * half] *= shrink;
        o[j].x[2 * half + 1] *= shrink;
      }
    }
    multiply_columns<kTiles, T, D>(o, s, v);
  });
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // The lanes' parts of a row's sum, in the same order on all four.
    sum[half] += __shfl_xor_sync(0xFFFFFFFFU, sum[half], 1);
    sum[half] += __shfl_xor_sync(0xFFFFFFFFU, sum[half], 2);
    const int here = row + 8 * half;
    if (lane % 4 == 0 && here < length) {
      // Natural logarithm of the sum of exp(scaled score).
      logsumexp[head.statistics + here] = fmaf(top[half], scale, log2f(sum[half]) * kLn2);
    }
  }
  store_rows<T, D>(out + head.out_offset, head.out_stride, block + warp_row, length, o, 1.0F / sum[0],
                   1.0F / sum[1]);
}

/// dK and dV, in dqkv[B,length,3C], of a block of keys; logsumexp and delta [B,H,length]. Scores are computed
/// transposed, with keys as rows, so that P^T and dS^T are the left operands of the following products.
///
/// For a key k and the queries q that see it: P = exp(score - logsumexp[q]), dV[k] = sum of P dout[q], dS = P
/// (dout[q] V[k] - delta[q]), dK[k] = scale times the sum of dS q. Every sum is over queries in ascending
/// order, in one warp: the bits do not depend on scheduling. P and dS are rounded to 16 bits before the
/// products.
template <class T, int D>
__global__ void __launch_bounds__(Shape<D>::kThreads)
    keys_kernel(T* dqkv, const T* dout, const T* qkv, const float* logsumexp, const float* delta, int length,
                int H, float scale) {
  using S = Shape<D>;
  extern __shared__ __align__(128) unsigned char shared[];
  T* base = reinterpret_cast<T*>(shared);
  const Tile<T, D> k{base};
  const Tile<T, D> v{base + S::kBlock * D};
  const Head<T> head = head_of<T, D>(qkv, length, H);
  // Shared memory: K and V (kBlock, D) each, then two buffers of Q and dout (kStep, D) each.
  const Pairs<T, D> queries{base + 2 * S::kBlock * D, head.q,          head.stride,
                            dout + head.out_offset,   head.out_stride, length};
  const int block = static_cast<int>(blockIdx.x) * S::kBlock;  // early keys have the most queries
  const int warp_row = static_cast<int>(threadIdx.x / 32) * 16;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int key = block + warp_row + lane / 4;  // and key + 8
  const int first = block / kStep;              // earlier queries see none of these keys
  const int steps = (length + kStep - 1) / kStep;

  // Both belong to the first group that walk() commits.
  copy_rows<S::kBlock, S::kThreads>(k, head.k, head.stride, block, length);
  copy_rows<S::kBlock, S::kThreads>(v, head.v, head.stride, block, length);
  FragmentC dk[D / 8];
  FragmentC dv[D / 8];
  clear(dk);
  clear(dv);
  const float to_log2 = scale * kLog2E;
  queries.walk(first, steps, [&](int step, Tile<T, D> q, Tile<T, D> g) {
    FragmentC p[kTiles];
    clear(p);
    multiply_rows<kTiles>(p, k, warp_row, q);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int query = step * kStep + j * 8 + lane % 4 * 2 + e % 2;
        // Rows of Q after the end are zeros and would score 0, not -inf: they are masked by index. Keys after
        // the end come after every query.
        const bool seen = query < length && key + e / 2 * 8 <= query;
        const float l = seen ? logsumexp[head.statistics + query] : 0.0F;
        p[j].x[e] = seen ? exp2f(fmaf(p[j].x[e], to_log2, -l * kLog2E)) : 0.0F;
      }
    }
    multiply_columns<kTiles, T, D>(dv, p, g);
    FragmentC ds[kTiles];
    clear(ds);
    multiply_rows<kTiles>(ds, v, warp_row, g);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int query = step * kStep + j * 8 + lane % 4 * 2 + e % 2;
        const float d = query < length ? delta[head.statistics + query] : 0.0F;
        ds[j].x[e] = p[j].x[e] * (ds[j].x[e] - d);
      }
    }
    multiply_columns<kTiles, T, D>(dk, ds, q);
  });
  // dqkv has the layout of qkv: the same offset from its start. This kernel writes the thirds of k and v,
  // queries_kernel that of q; together all of dqkv.
  T* to = dqkv + (head.k - qkv);
  store_rows<T, D>(to, head.stride, block + warp_row, length, dk, scale, scale);
  to = dqkv + (head.v - qkv);
  store_rows<T, D>(to, head.stride, block + warp_row, length, dv, 1.0F, 1.0F);
}

/// dQ of a block of queries, the first third of dqkv; arrays as above. Queries are the rows, as in forward,
/// and dQ[q] = scale times the sum over keys, in ascending order, of dS k.
template <class T, int D>
__global__ void __launch_bounds__(Shape<D>::kThreads)
    queries_kernel(T* dqkv, const T* dout, const T* qkv, const float* logsumexp, const float* delta,
                   int length, int H, float scale) {
  using S = Shape<D>;
  extern __shared__ __align__(128) unsigned char shared[];
  T* base = reinterpret_cast<T*>(shared);
  const Tile<T, D> q{base};
  const Tile<T, D> g{base + S::kBlock * D};
  const Head<T> head = head_of<T, D>(qkv, length, H);
  // Shared memory: Q and dout (kBlock, D) each, then two buffers of K and V (kStep, D) each.
  const Pairs<T, D> keys{base + 2 * S::kBlock * D, head.k, head.stride, head.v, head.stride, length};
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x) * S::kBlock;
  const int warp_row = static_cast<int>(threadIdx.x / 32) * 16;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = block + warp_row + lane / 4;
  const int last = block + S::kBlock < length ? block + S::kBlock : length;
  const int steps = (last + kStep - 1) / kStep;

  copy_rows<S::kBlock, S::kThreads>(q, head.q, head.stride, block, length);
  copy_rows<S::kBlock, S::kThreads>(g, dout + head.out_offset, head.out_stride, block, length);
  // A lane has rows g and g + 8 in every step: their statistics stay in registers. l is in units of log2.
  float l[2];
  float d[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int here = row + 8 * half;
    l[half] = here < length ? logsumexp[head.statistics + here] * kLog2E : 0.0F;
    d[half] = here < length ? delta[head.statistics + here] : 0.0F;
  }
  FragmentC dq[D / 8];
  clear(dq);
  const float to_log2 = scale * kLog2E;
  keys.walk(0, steps, [&](int step, Tile<T, D> k, Tile<T, D> v) {
    FragmentC p[kTiles];
    FragmentC ds[kTiles];
    clear(p);
    clear(ds);
    multiply_rows<kTiles>(p, q, warp_row, k);
    multiply_rows<kTiles>(ds, g, warp_row, v);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int key = step * kStep + j * 8 + lane % 4 * 2 + e % 2;
        // Covers keys after the end as well: they come after every query that is stored.
        const bool seen = key <= row + e / 2 * 8;
        const float weight = seen ? exp2f(fmaf(p[j].x[e], to_log2, -l[e / 2])) : 0.0F;
        ds[j].x[e] = weight * (ds[j].x[e] - d[e / 2]);
      }
    }
    multiply_columns<kTiles, T, D>(dq, ds, k);
  });
  store_rows<T, D>(dqkv + (head.q - qkv), head.stride, block + warp_row, length, dq, scale, scale);
}

/// delta[b,h,t] = sum over the head's columns of dout * out; one warp per token and head. It
/// equals the sum over keys of P dP (FlashAttention-2, algorithm 2, line 4). A lane has every 32nd
/// column.
template <class T, int D>
__global__ void __launch_bounds__(256)
    delta_kernel(float* delta, const T* dout, const T* out, std::int64_t rows, int length, int H) {
  const std::int64_t i = std::int64_t{blockIdx.x} * 8 + threadIdx.x / 32;  // (b * length + t) * H + h
  if (i >= rows) return;
  const std::int64_t token = i / H;
  const int h = static_cast<int>(i % H);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t at = token * H * D + h * D;
  float sum = 0;
#pragma unroll
  for (int c = 0; c < D; c += 32)
    sum = fmaf(to_float(dout[at + c + lane]), to_float(out[at + c + lane]), sum);
  sum = warp_sum(sum);
  if (lane == 0) delta[(token / length * H + h) * length + token % length] = sum;
}

template <class T, int D>
struct Launch {
  using S = Shape<D>;
  static constexpr std::size_t kForwardBytes = (S::kBlock + 4 * kStep) * D * sizeof(T);
  static constexpr std::size_t kBackwardBytes = (2 * S::kBlock + 4 * kStep) * D * sizeof(T);

  /// More than 48 KiB of dynamic shared memory must be enabled for a kernel before its launch.
  template <class Kernel>
  static void allow(const char* name, Kernel kernel, std::size_t bytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          name, "cudaFuncSetAttribute");
  }
  /// tensor_attention_fits() keeps B * H within the grid's limit along y, 65535 blocks.
  static dim3 grid(const AttentionShape& s) {
    return {static_cast<unsigned>((s.T + S::kBlock - 1) / S::kBlock), static_cast<unsigned>(s.B * s.H)};
  }

  static void forward(const Context& on, void* out, float* logsumexp, const void* qkv,
                      const AttentionShape& s) {
    allow("attention_forward", forward_kernel<T, D>, kForwardBytes);
    forward_kernel<T, D><<<grid(s), S::kThreads, kForwardBytes, stream_of(on)>>>(
        static_cast<T*>(out), logsumexp, static_cast<const T*>(qkv), static_cast<int>(s.T),
        static_cast<int>(s.H), s.scale());
    check_launch("attention_forward");
  }

  static void backward(const Context& on, void* dqkv, const void* dout, const void* out, const void* qkv,
                       const float* logsumexp, const AttentionShape& s, float* delta) {
    constexpr const char* kName = "attention_backward";
    const std::int64_t rows = s.B * s.T * s.H;
    const auto* g = static_cast<const T*>(dout);
    const auto* in = static_cast<const T*>(qkv);
    auto* to = static_cast<T*>(dqkv);
    const int length = static_cast<int>(s.T);
    const int H = static_cast<int>(s.H);
    allow(kName, keys_kernel<T, D>, kBackwardBytes);
    allow(kName, queries_kernel<T, D>, kBackwardBytes);
    // In stream order: both kernels below read delta. They write different thirds of dqkv.
    delta_kernel<T, D><<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream_of(on)>>>(
        delta, g, static_cast<const T*>(out), rows, length, H);
    keys_kernel<T, D><<<grid(s), S::kThreads, kBackwardBytes, stream_of(on)>>>(to, g, in, logsumexp, delta,
                                                                               length, H, s.scale());
    queries_kernel<T, D><<<grid(s), S::kThreads, kBackwardBytes, stream_of(on)>>>(to, g, in, logsumexp, delta,
                                                                                  length, H, s.scale());
    check_launch(kName);
  }
};

/// f(Launch of the type and head width).
template <class F>
void with_launch(DType type, std::int64_t width, F f) {
  if (type == DType::bf16) {
    if (width == 64) return f(Launch<__nv_bfloat16, 64>{});
    return f(Launch<__nv_bfloat16, 128>{});
  }
  if (width == 64) return f(Launch<__half, 64>{});
  return f(Launch<__half, 128>{});
}

}  // namespace

bool tensor_attention_fits(const Context& on, DType type, const AttentionShape& s) {
  if (type != DType::bf16 && type != DType::f16) return false;
  if (s.width() != 64 && s.width() != 128) return false;
  // Positions are ints in the kernels.
  if (s.B * s.H > 65535 || s.T > (1 << 30)) return false;
  // The largest of the four, 96 KiB: a device that supports it supports all.
  return Launch<__half, 128>::kBackwardBytes <= on.shared_bytes_limit();
}

void tensor_attention_forward(const Context& on, Ptr out, float* logsumexp, ConstPtr qkv,
                              const AttentionShape& s) {
  with_launch(out.type, s.width(),
              [&](auto launch) { decltype(launch)::forward(on, out.data, logsumexp, qkv.data, s); });
}

void tensor_attention_backward(const Context& on, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                               const float* logsumexp, const AttentionShape& s, float* delta) {
  with_launch(dqkv.type, s.width(), [&](auto launch) {
    decltype(launch)::backward(on, dqkv.data, dout.data, out.data, qkv.data, logsumexp, s, delta);
  });
}

}  // namespace shardscope::kernels::cuda
