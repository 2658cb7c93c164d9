// Causal attention for any type and head width, in fp32 arithmetic: for cases that the tensor-core kernels do
// not support. A warp has a few rows; the other side is loaded into shared memory in tiles of 32 rows, one
// row per lane for the scores. Sums over the head's columns have one column per lane.
//
// Backward has two kernels, one for dQ and one for dK and dV, and each recomputes the scores: every sum is
// then computed by one warp, in ascending order of rows, and is the same in every run. Atomic additions to dQ
// would not be.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kRows = 2;                ///< of a warp
constexpr int kBlock = kWarps * kRows;  ///< rows that a block owns
constexpr int kTile = 32;               ///< rows of the side that is looped over, in shared memory
constexpr int kPerLane = static_cast<int>(kWidestHead) / 32;  ///< columns of a head that a lane sums

/// Location of head h of sequence b, for block (x, b * H + h) of the grid. Offsets and strides in elements.
struct Head {
  std::int64_t q, k, v;          ///< of token 0 in qkv[B,T,3C]
  std::int64_t stride;           ///< from token to token there
  std::int64_t out, out_stride;  ///< the same in arrays [B,T,C]
  std::int64_t statistics;       ///< of token 0 in arrays [B,H,T]
  int width;                     ///< C / H
};
__device__ __forceinline__ Head head_of(const AttentionShape& s) {
  const std::int64_t h = blockIdx.y % s.H;
  const std::int64_t b = blockIdx.y / s.H;
  const std::int64_t width = s.C / s.H;
  const std::int64_t q = b * s.T * 3 * s.C + h * width;
  return {q,
          q + s.C,
          q + 2 * s.C,
          3 * s.C,
          b * s.T * s.C + h * width,
          s.C,
          (b * s.H + h) * s.T,
          static_cast<int>(width)};
}

/// Copies rows [first, first + count) as floats, `width + 1` apart: if the width is even, lanes that read one
/// column of 32 rows then have no bank conflicts. Rows from `rows` on are zero. All threads of the block call
/// it; its stores are visible after the next barrier.
template <class T>
__device__ void stage(float* to, const T* from, std::int64_t stride, std::int64_t first, int count,
                      std::int64_t rows, int width) {
  for (int i = static_cast<int>(threadIdx.x); i < count * width; i += kThreads) {
    const int row = i / width;
    const int column = i % width;
    to[row * (width + 1) + column] =
        first + row < rows ? to_float(from[(first + row) * stride + column]) : 0.0F;
  }
}

/// Both in shared memory. `a` is the same row on all lanes (one broadcast), `b` a different row on each.
__device__ __forceinline__ float dot(const float* a, const float* b, int width) {
  float sum = 0;
  for (int c = 0; c < width; ++c) sum = fmaf(a[c], b[c], sum);
  return sum;
}

/// sums[column of this lane] += weight of lane j * row j of the tile, for the first `count` rows. Each lane
/// computed the weight of one row; here it adds up columns lane, lane + 32, ... Weights are exchanged by
/// shuffles, so the whole warp must call it.
__device__ __forceinline__ void add_rows(float (&sums)[kPerLane], float weight, const float* tile, int count,
                                         int width) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int j = 0; j < count; ++j) {
    const float w = __shfl_sync(0xFFFFFFFFU, weight, j);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int column = i * 32 + lane;
      if (column < width) sums[i] = fmaf(w, tile[j * (width + 1) + column], sums[i]);
    }
  }
}

/// use(first row) for the tiles of rows [begin, end) of two arrays, each tile in shared memory by then.
/// Bounds are equal for the block: all its threads reach the same barriers.
template <class T, class Use>
__device__ __forceinline__ void walk_tiles(float* one, const T* first_array, std::int64_t first_stride,
                                           float* two, const T* second_array, std::int64_t second_stride,
                                           std::int64_t begin, std::int64_t end, std::int64_t rows, int width,
                                           const Use& use) {
  for (std::int64_t first = begin; first < end; first += kTile) {
    // All warps have used the previous tiles, which may now be overwritten.
    __syncthreads();
    stage(one, first_array, first_stride, first, kTile, rows, width);
    stage(two, second_array, second_stride, first, kTile, rows, width);
    // These tiles are visible to all warps, and so are the rows that the block staged before the loop.
    __syncthreads();
    use(first);
  }
}

template <class T>
__device__ __forceinline__ void store_row(T* to, const float (&sums)[kPerLane], float factor, int width) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int column = i * 32 + lane;
    if (column < width) to[column] = from_float<T>(sums[i] * factor);
  }
}

/// out[B,T,C] and logsumexp[B,H,T] from qkv[B,T,3C], for kBlock queries of one head.
/// Online softmax over tiles: `top` is the largest score so far, `sum` of exp(score -
/// top); earlier sums are scaled by exp(old - new) when top grows. Shared memory, rows
/// of width + 1 floats: q (kBlock), k (kTile), v (kTile); 72 rows, 74 KB at the widest
/// head.
template <class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(T* out, float* logsumexp, const T* qkv, const AttentionShape s, float scale) {
  extern __shared__ float shared[];
  const Head head = head_of(s);
  const int pitch = head.width + 1;
  float* q = shared;
  float* k = q + kBlock * pitch;
  float* v = k + kTile * pitch;
  const std::int64_t block = std::int64_t{blockIdx.x} * kBlock;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_row = static_cast<int>(threadIdx.x / 32) * kRows;
  stage(q, qkv + head.q, head.stride, block, kBlock, s.T, head.width);

  float o[kRows][kPerLane] = {};
  float top[kRows];
  float sum[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) top[r] = -INFINITY;
  const std::int64_t last = block + kBlock < s.T ? block + kBlock : s.T;
  const auto step = [&](std::int64_t first) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t query = block + first_row + r;
      // A lane has key first + lane. Keys after the end come after every query that is stored.
      const bool seen = first + lane <= query && query < s.T;
      const float score =
          seen ? dot(q + (first_row + r) * pitch, k + lane * pitch, head.width) * scale : -INFINITY;
      const float most = fmaxf(top[r], warp_max(score));
      // Rows after the end see no key, and every score of a row may be -inf: -inf - -inf would be NaN.
      if (most == -INFINITY) continue;  // equal on the whole warp
      const float shrink = expf(top[r] - most);
      const float p = seen ? expf(score - most) : 0.0F;
      top[r] = most;
      // The whole warp's weights in one tree reduction; every lane holds the row's total.
      sum[r] = fmaf(sum[r], shrink, warp_sum(p));
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) o[r][i] *= shrink;
      add_rows(o[r], p, v, kTile, head.width);
    }
  };
  walk_tiles(k, qkv + head.k, head.stride, v, qkv + head.v, head.stride, 0, last, s.T, head.width, step);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t query = block + first_row + r;
    if (query >= s.T) continue;
    store_row(out + head.out + query * head.out_stride, o[r], 1.0F / sum[r], head.width);
    if (lane == 0) logsumexp[head.statistics + query] = top[r] + logf(sum[r]);
  }
}

/// dQ, the first third of dqkv[B,T,3C], for kBlock queries of one head: the sum over the keys visible to a
/// query of scale * P (dP - delta) K, with P = exp(score - logsumexp) and dP = dout V^T. Shared memory,
/// rows of width + 1 floats: q and dout (kBlock each), k and v (kTile each); 80 rows, 82 KB at the widest
/// head.
template <class T>
__global__ void __launch_bounds__(kThreads)
    queries_kernel(T* dqkv, const T* dout, const T* qkv, const float* logsumexp, const float* delta,
                   const AttentionShape s, float scale) {
  extern __shared__ float shared[];
  const Head head = head_of(s);
  const int pitch = head.width + 1;
  float* q = shared;
  float* g = q + kBlock * pitch;
  float* k = g + kBlock * pitch;
  float* v = k + kTile * pitch;
  const std::int64_t block = std::int64_t{blockIdx.x} * kBlock;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_row = static_cast<int>(threadIdx.x / 32) * kRows;
  stage(q, qkv + head.q, head.stride, block, kBlock, s.T, head.width);
  stage(g, dout + head.out, head.out_stride, block, kBlock, s.T, head.width);

  float dq[kRows][kPerLane] = {};
  const std::int64_t last = block + kBlock < s.T ? block + kBlock : s.T;
  const auto step = [&](std::int64_t first) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t query = block + first_row + r;
      float ds = 0;
      if (query < s.T && first + lane <= query) {
        const float score = dot(q + (first_row + r) * pitch, k + lane * pitch, head.width) * scale;
        const float p = expf(score - logsumexp[head.statistics + query]);
        const float dp = dot(g + (first_row + r) * pitch, v + lane * pitch, head.width);
        ds = p * (dp - delta[head.statistics + query]);
      }
      add_rows(dq[r], ds, k, kTile, head.width);
    }
  };
  walk_tiles(k, qkv + head.k, head.stride, v, qkv + head.v, head.stride, 0, last, s.T, head.width, step);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t query = block + first_row + r;
    if (query < s.T) store_row(dqkv + head.q + query * head.stride, dq[r], scale, head.width);
  }
}

/// dK and dV, the other thirds of dqkv[B,T,3C], for kBlock keys of one head: sums over the queries that see a
/// key. A kernel separate from queries_kernel, so that no sum depends on the order of blocks. dV = sum of P
/// dout, dK = scale * sum of P (dP - delta) q, with P and dP as in queries_kernel. Shared memory likewise,
/// with k and v for the block and q and dout in tiles.
template <class T>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(T* dqkv, const T* dout, const T* qkv, const float* logsumexp, const float* delta,
                const AttentionShape s, float scale) {
  extern __shared__ float shared[];
  const Head head = head_of(s);
  const int pitch = head.width + 1;
  float* k = shared;
  float* v = k + kBlock * pitch;
  float* q = v + kBlock * pitch;
  float* g = q + kTile * pitch;
  const std::int64_t block = std::int64_t{blockIdx.x} * kBlock;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_row = static_cast<int>(threadIdx.x / 32) * kRows;
  stage(k, qkv + head.k, head.stride, block, kBlock, s.T, head.width);
  stage(v, qkv + head.v, head.stride, block, kBlock, s.T, head.width);

  float dk[kRows][kPerLane] = {};
  float dv[kRows][kPerLane] = {};
  const auto step = [&](std::int64_t first) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t key = block + first_row + r;
      const std::int64_t query = first + lane;
      float p = 0;
      float ds = 0;
      if (query < s.T && key <= query) {
        const float score = dot(k + (first_row + r) * pitch, q + lane * pitch, head.width) * scale;
        p = expf(score - logsumexp[head.statistics + query]);
        const float dp = dot(v + (first_row + r) * pitch, g + lane * pitch, head.width);
        ds = p * (dp - delta[head.statistics + query]);
      }
      add_rows(dv[r], p, g, kTile, head.width);
      add_rows(dk[r], ds, q, kTile, head.width);
    }
  };
  // From the tile with the first query that sees the block's first key; earlier queries see none of these
  // keys.
  walk_tiles(q, qkv + head.q, head.stride, g, dout + head.out, head.out_stride, block / kTile * kTile, s.T,
             s.T, head.width, step);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t key = block + first_row + r;
    if (key >= s.T) continue;
    store_row(dqkv + head.k + key * head.stride, dk[r], scale, head.width);
    store_row(dqkv + head.v + key * head.stride, dv[r], 1.0F, head.width);
  }
}

/// delta[B,H,T] = sum over the head's columns of dout[B,T,C] * out[B,T,C]; one warp per token and head.
template <class T>
__global__ void __launch_bounds__(kThreads)
    delta_kernel(float* delta, const T* dout, const T* out, const AttentionShape s) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;  // (b * T + t) * H + h
  if (i >= s.B * s.T * s.H) return;
  const std::int64_t token = i / s.H;
  const std::int64_t h = i % s.H;
  const std::int64_t width = s.C / s.H;
  float sum = 0;
  for (std::int64_t c = threadIdx.x % 32; c < width; c += 32) {
    const std::int64_t at = token * s.C + h * width + c;
    sum = fmaf(to_float(dout[at]), to_float(out[at]), sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) delta[(token / s.T * s.H + h) * s.T + token % s.T] = sum;
}

// The grid's limit along y is 65535 blocks.
dim3 grid(const char* kernel, const AttentionShape& s) {
  if (s.B * s.H > 65535) {
    throw_bad_argument(kernel, "batch times heads is " + std::to_string(s.B * s.H) +
                                   "; the CUDA kernels take at most 65535, use a smaller micro-batch");
  }
  return {static_cast<unsigned>((s.T + kBlock - 1) / kBlock), static_cast<unsigned>(s.B * s.H)};
}

std::size_t shared_bytes(const AttentionShape& s, int rows) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(s.width() + 1) * sizeof(float);
}

// More than 48 KiB of dynamic shared memory must be enabled per kernel. If the device does not have it,
// CUDA's error is thrown here.
template <class Kernel>
void allow(const char* name, Kernel kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        name, "cudaFuncSetAttribute");
}

}  // namespace

void plain_attention_forward(const Context& on, Ptr out, float* logsumexp, ConstPtr qkv,
                             const AttentionShape& s) {
  constexpr const char* kName = "attention_forward";
  with_type(kName, qkv.type, [&](auto tag) {
    using T = decltype(tag);
    const std::size_t bytes = shared_bytes(s, kBlock + 2 * kTile);
    allow(kName, forward_kernel<T>, bytes);
    forward_kernel<T><<<grid(kName, s), kThreads, bytes, stream_of(on)>>>(
        static_cast<T*>(out.data), logsumexp, static_cast<const T*>(qkv.data), s, s.scale());
  });
  check_launch(kName);
}

void plain_attention_backward(const Context& on, Ptr dqkv, ConstPtr dout, ConstPtr out, ConstPtr qkv,
                              const float* logsumexp, const AttentionShape& s, float* delta) {
  constexpr const char* kName = "attention_backward";
  with_type(kName, qkv.type, [&](auto tag) {
    using T = decltype(tag);
    const auto* g = static_cast<const T*>(dout.data);
    const auto* in = static_cast<const T*>(qkv.data);
    auto* to = static_cast<T*>(dqkv.data);
    const std::size_t bytes = shared_bytes(s, 2 * kBlock + 2 * kTile);
    const auto rows = static_cast<unsigned>((s.B * s.T * s.H + kWarps - 1) / kWarps);
    allow(kName, queries_kernel<T>, bytes);
    allow(kName, keys_kernel<T>, bytes);
    // In stream order: both kernels below read delta, and write different thirds of dqkv.
    delta_kernel<T><<<rows, kThreads, 0, stream_of(on)>>>(delta, g, static_cast<const T*>(out.data), s);
    keys_kernel<T>
        <<<grid(kName, s), kThreads, bytes, stream_of(on)>>>(to, g, in, logsumexp, delta, s, s.scale());
    queries_kernel<T>
        <<<grid(kName, s), kThreads, bytes, stream_of(on)>>>(to, g, in, logsumexp, delta, s, s.scale());
  });
  check_launch(kName);
}

}  // namespace shardscope::kernels::cuda
