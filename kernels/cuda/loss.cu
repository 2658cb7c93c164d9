// Losses and their gradients. One block per row: the largest logit and the sum of exponentials in one pass,
// the gradient overwrites the logits in a second, so that no second buffer of their size is needed. Row
// losses are added in double in a fixed order.
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kSumThreads = 1024;

/// Sum of exp(x - top), in a form in which two can be joined in any order. Initially top is -inf and sum is
/// 0; sum is NaN after a NaN, which must be preserved.
struct Tail {
  float top;
  float sum;
};
/// e^x in a third of expf's instructions; with expf a row of logits would be limited by arithmetic, not
/// memory. For x <= 0 the result is as exact as x, a difference of logits, is.
__device__ __forceinline__ float exponential(float x) { return exp2f(x * 1.4426950408889634F); }
/// exp(from - to) for from <= to; 1 if both are -inf, whose difference would be NaN.
__device__ __forceinline__ float shrink(float from, float to) {
  return from == to ? 1.0F : exponential(from - to);
}
__device__ __forceinline__ Tail join(Tail a, Tail b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.sum * shrink(a.top, top) + b.sum * shrink(b.top, top)};
}

// Joins over the block, on every thread; may be called once per kernel (`tails` is not protected against a
// second call). Butterfly exchanges join the same pairs on all lanes of a warp, so that all threads get the
// same result.
__device__ Tail block_join(Tail mine) {
  __shared__ Tail tails[32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Tail other{__shfl_xor_sync(0xFFFFFFFFU, mine.top, step),
                     __shfl_xor_sync(0xFFFFFFFFU, mine.sum, step)};
    mine = join(mine, other);
  }
  if (threadIdx.x % 32 == 0) tails[threadIdx.x / 32] = mine;
  __syncthreads();
  // Every warp joins the warps' tails: no second barrier.
  mine = threadIdx.x % 32 < blockDim.x / 32 ? tails[threadIdx.x % 32] : Tail{-INFINITY, 0};
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Tail other{__shfl_xor_sync(0xFFFFFFFFU, mine.top, step),
                     __shfl_xor_sync(0xFFFFFFFFU, mine.sum, step)};
    mine = join(mine, other);
  }
  return mine;
}

/// f(first, values) over a row of V elements: for a whole 16-byte pack, or for one element at the row's
/// unaligned head and tail. `first` is the index of values[0]. f may change the values, which are written
/// back if kStore is true. If V is not a multiple of 16 / sizeof(T), rows start at any offset within 16
/// bytes: head and tail have at most 16 / sizeof(T) - 1 elements each. An element is processed by the same
/// thread in both passes of a kernel.
template <bool kStore, class T, class F>
__device__ __forceinline__ void over_row(T* row, std::int64_t V, F f) {
  constexpr int N = 16 / sizeof(T);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(T));
  std::int64_t head = misaligned == 0 ? 0 : N - misaligned;
  head = head < V ? head : V;
  const std::int64_t packs = (V - head) / N;
  const auto one = [&](std::int64_t i) {
    float value[1] = {to_float(row[i])};
    f(i, value);
    if constexpr (kStore) row[i] = from_float<T>(value[0]);
  };
  if (threadIdx.x < head) one(threadIdx.x);
  auto* body = reinterpret_cast<Pack<T, N>*>(row + head);
  for (std::int64_t p = threadIdx.x; p < packs; p += kThreads) {
    Pack<T, N> pack = body[p];
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = to_float(pack.x[k]);
    f(head + p * N, values);
    if constexpr (kStore) {
#pragma unroll
      for (int k = 0; k < N; ++k) pack.x[k] = from_float<T>(values[k]);
      body[p] = pack;
    }
  }
  const std::int64_t tail = head + packs * N + threadIdx.x;
  if (tail < V) one(tail);
}

/// losses[N] of logits[N,V] against target[N], one block per row; the logits become (softmax -
/// one_hot) * factor. factor = grad_scale / counted rows. loss = log(sum of exp(x - top)) + top -
/// x[wanted].
template <class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(float* losses, T* logits, const std::int32_t* target, std::int64_t V, float factor) {
  T* row = logits + std::int64_t{blockIdx.x} * V;
  const std::int64_t wanted = target[blockIdx.x];
  if (wanted < 0) {  // ignored
    for (std::int64_t i = threadIdx.x; i < V; i += kThreads) row[i] = from_float<T>(0.0F);
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    return;
  }
  // All threads read it before the second pass overwrites it: block_join's barrier and the one below are
  // between.
  const float logit = to_float(row[wanted]);
  Tail mine{-INFINITY, 0};
  over_row<false>(row, V, [&](std::int64_t, const auto& values) {
    float top = mine.top;
    for (const float x : values) top = fmaxf(top, x);
    if (top > mine.top) mine = {top, mine.sum * exponential(mine.top - top)};
    // -inf adds nothing, even to an empty sum; inf or NaN makes the sum, and so the loss, not finite.
    const float from = top == -INFINITY ? 0.0F : top;
    for (const float x : values) mine.sum += exponential(x - from);
  });
  const Tail all = block_join(mine);
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(all.sum) + all.top - logit;
  // softmax * factor = exp(x - top) * (factor / sum): one division per row.
  const float k = __fdiv_rn(factor, all.sum);
  __syncthreads();  // every thread has read the wanted logit
  over_row<true>(row, V, [&]<std::size_t N>(std::int64_t first, float(&values)[N]) {
    for (float& x : values) x = exponential(x - all.top) * k;
    if (wanted < first || wanted >= first + static_cast<std::int64_t>(N)) return;
    for (std::size_t i = 0; i < N; ++i) {
      if (first + static_cast<std::int64_t>(i) == wanted) values[i] -= factor;
    }
  });
}

/// *mean = sum of n values / count, in double, in a fixed order: thread i of the single block adds the values
/// i, i + kSumThreads, ...; the order depends only on n.
template <class T>
__global__ void __launch_bounds__(kSumThreads)
    mean_kernel(float* mean, const T* values, std::int64_t n, double count) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kSumThreads) sum += static_cast<double>(values[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) *mean = static_cast<float>(sum / count);
}

// Elements per block; doubled until the blocks' sums fit the workspace. Depends only on n, and so does the
// order of the sum.
constexpr int kMsePiece = 16384;
constexpr int kMseThreads = 256;

/// dx[n] = (x - target) * factor, and partial[block] = the sum of squares of a piece of `piece` elements.
/// factor = 2 grad_scale / n.
template <class D, class X>
__global__ void __launch_bounds__(kMseThreads)
    mse_kernel(double* partial, D* dx, const X* x, const float* target, std::int64_t n, float factor,
               std::int64_t piece) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * piece;
  const std::int64_t end = begin + piece < n ? begin + piece : n;
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kMseThreads) {
    const float difference = to_float(x[i]) - target[i];
    sum += static_cast<double>(difference) * static_cast<double>(difference);
    dx[i] = from_float<D>(difference * factor);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

}  // namespace

void cross_entropy(const Context& on, float* loss, Ptr logits, const std::int32_t* target, std::int64_t N,
                   std::int64_t V, float grad_scale, std::int64_t ignored) {
  constexpr const char* kName = "cross_entropy";
  const auto counted = static_cast<double>(N - ignored);
  if (static_cast<std::size_t>(N) * sizeof(float) > Context::kWorkspaceBytes) {
    throw_bad_argument(kName,
                       std::to_string(N) + " rows are more than the workspace of a stream has room for");
  }
  // fp32 [N]. Kernels of a stream run in order, so no other kernel uses the workspace before mean_kernel has
  // read it.
  auto* losses = static_cast<float*>(on.workspace());
  // If all rows are ignored it is not finite, but no row uses it; the mean is then 0 / 0 = NaN.
  const auto factor = static_cast<float>(static_cast<double>(grad_scale) / counted);
  with_type(kName, logits.type, [&](auto tag) {
    using T = decltype(tag);
    cross_entropy_kernel<<<static_cast<unsigned>(N), kThreads, 0, stream_of(on)>>>(
        losses, static_cast<T*>(logits.data), target, V, factor);
  });
  mean_kernel<<<1, kSumThreads, 0, stream_of(on)>>>(loss, losses, N, counted);
  check_launch(kName);
}

void mse(const Context& on, float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n,
         float grad_scale) {
  constexpr const char* kName = "mse";
  std::int64_t piece = kMsePiece;
  while ((n + piece - 1) / piece > static_cast<std::int64_t>(Context::kWorkspaceBytes / sizeof(double))) {
    piece *= 2;
  }
  const std::int64_t pieces = (n + piece - 1) / piece;
  auto* partial = static_cast<double*>(on.workspace());
  const auto factor = static_cast<float>(2.0 * static_cast<double>(grad_scale) / static_cast<double>(n));
  with_type(kName, dx.type, [&](auto d_tag) {
    with_type(kName, x.type, [&](auto x_tag) {
      using D = decltype(d_tag);
      using X = decltype(x_tag);
      mse_kernel<<<static_cast<unsigned>(pieces), kMseThreads, 0, stream_of(on)>>>(
          partial, static_cast<D*>(dx.data), static_cast<const X*>(x.data), target, n, factor, piece);
    });
  });
  mean_kernel<<<1, kSumThreads, 0, stream_of(on)>>>(loss, partial, pieces, static_cast<double>(n));
  check_launch(kName);
}

}  // namespace shardscope::kernels::cuda
