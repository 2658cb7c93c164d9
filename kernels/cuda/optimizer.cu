// The update of a shard, and the norm of a gradient with its overflow check in one pass.
#include <type_traits>

#include "kernels/adamw_scalars.h"
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPack = 4;  // floats in 16 bytes: master, m and v

/// Type of param16 if there is none: the copy is compiled out.
struct NoCopy {};

/// The same operations in the same order as the CPU's vector code, so that both agree bitwise. Division and
/// square root are rounded to nearest. w decays by lr * weight_decay (decoupled) or the gradient gets w * l2;
/// the other factor is 1 or 0. m * step_size is lr m / (1 - beta1^t); inv_sqrt_bias2 has the bias correction
/// of v.
__device__ __forceinline__ void update(float& w, float& m, float& v, float g, const AdamWScalars& s) {
  g = g * s.grad_scale;
  g = fmaf(w, s.l2, g);
  w = w * s.decay;
  m = fmaf(m, s.beta1, g * s.one_minus_beta1);
  v = fmaf(v, s.beta2, g * g * s.one_minus_beta2);
  const float denominator = fmaf(__fsqrt_rn(v), s.inv_sqrt_bias2, s.epsilon);
  w = w - __fdiv_rn(m * s.step_size, denominator);
}

/// One AdamW step of n elements, N at a time: master, m, v fp32[n] in place, grad[n] of any type, param16[n]
/// the rounded master weights (NoCopy: none).
/// A thread reads its elements of all arrays before it writes them. The last n % N are computed one by one;
/// both paths execute the same operations, so no bit depends on the start of a shard.
template <int N, class Grad, class Param>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(float* master, float* m, float* v, Param* param16, const Grad* grad, std::int64_t n,
                 const AdamWScalars s) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t packs = n / N;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < packs; i += stride) {
    Pack<float, N> w = reinterpret_cast<Pack<float, N>*>(master)[i];
    Pack<float, N> a = reinterpret_cast<Pack<float, N>*>(m)[i];
    Pack<float, N> b = reinterpret_cast<Pack<float, N>*>(v)[i];
    const Pack<Grad, N> g = reinterpret_cast<const Pack<Grad, N>*>(grad)[i];
#pragma unroll
    for (int k = 0; k < N; ++k) update(w.x[k], a.x[k], b.x[k], to_float(g.x[k]), s);
    reinterpret_cast<Pack<float, N>*>(master)[i] = w;
    reinterpret_cast<Pack<float, N>*>(m)[i] = a;
    reinterpret_cast<Pack<float, N>*>(v)[i] = b;
    if constexpr (!std::is_same_v<Param, NoCopy>) {
      Pack<Param, N> p;
#pragma unroll
      for (int k = 0; k < N; ++k) p.x[k] = from_float<Param>(w.x[k]);
      reinterpret_cast<Pack<Param, N>*>(param16)[i] = p;
    }
  }
  for (std::int64_t i = packs * N + first; i < n; i += stride) {
    update(master[i], m[i], v[i], to_float(grad[i]), s);
    if constexpr (!std::is_same_v<Param, NoCopy>) param16[i] = from_float<Param>(master[i]);
  }
}

template <class Grad, class Param>
void launch_adamw(const Context& on, float* master, float* m, float* v, Param* param16, const Grad* grad,
                  std::int64_t n, const AdamWScalars& s) {
  // 16-bit arrays move 8 bytes per 16 bytes of an fp32 array.
  bool wide = aligned(master, 16) && aligned(m, 16) && aligned(v, 16) && aligned(grad, sizeof(Grad) * kPack);
  if constexpr (!std::is_same_v<Param, NoCopy>) wide = wide && aligned(param16, sizeof(Param) * kPack);
  if (wide) {
    adamw_kernel<kPack><<<blocks_for(on, n, kThreads, kPack), kThreads, 0, stream_of(on)>>>(
        master, m, v, param16, grad, n, s);
  } else {
    adamw_kernel<1>
        <<<blocks_for(on, n, kThreads, 4), kThreads, 0, stream_of(on)>>>(master, m, v, param16, grad, n, s);
  }
  check_launch("adamw_step");
}

// ---- norm ------------------------------------------------------------------------------------------------
// [Note: order of a norm's sum]
// The array is cut into pieces of a fixed number of elements, independent of the device: a block sums a
// piece, another block adds the pieces in order. So a norm has the same bits on every GPU and in every run.

constexpr int kNormThreads = 512;
// At most kMostPieces pieces of at least kLeastPiece elements; their sums need up to 64 KiB of workspace.
constexpr std::int64_t kMostPieces = 8192;
constexpr std::int64_t kLeastPiece = 16 * kNormThreads;

/// partial[block]: the sum of squares, in double, of a piece of `piece` elements of x[n]; *bad |= 1 if one is
/// inf or NaN.
template <class T>
__global__ void __launch_bounds__(kNormThreads)
    norm_kernel(double* partial, std::uint32_t* bad, const T* x, std::int64_t n, std::int64_t piece) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * piece;
  const std::int64_t end = begin + piece < n ? begin + piece : n;
  double sum = 0;
  bool found = false;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kNormThreads) {
    const float value = to_float(x[i]);
    // Squares of floats are exact in double, but a sum of them in float would lose small gradients.
    sum += static_cast<double>(value) * static_cast<double>(value);
    found |= (__float_as_uint(value) & 0x7F800000U) == 0x7F800000U;
  }
  // One atomic operation per block, and only if an element is not finite.
  const int any = __syncthreads_or(found ? 1 : 0);
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    if (any != 0) atomicOr(bad, 1U);
  }
}

/// *sum += partial[0] + ... + partial[n - 1], by one block in an order that depends only on n. Only thread 0
/// accesses *sum, and kernels of a stream run in order: no atomic addition is needed.
__global__ void __launch_bounds__(kNormThreads)
    add_partials(double* sum, const double* partial, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kNormThreads) total += partial[i];
  total = block_sum(total);
  if (threadIdx.x == 0) *sum += total;
}

/// Adds the numbers of infinite and NaN elements of x[n] to counts[0] and counts[1]. Rarely run; atomic
/// operations only for such elements.
template <class T>
__global__ void __launch_bounds__(kNormThreads)
    not_finite_kernel(unsigned long long* counts, const T* x, std::int64_t n) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kNormThreads;
  unsigned long long infinite = 0, nan = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kNormThreads + threadIdx.x; i < n; i += stride) {
    const unsigned bits = __float_as_uint(to_float(x[i])) & 0x7FFFFFFFU;
    infinite += bits == 0x7F800000U ? 1 : 0;
    nan += bits > 0x7F800000U ? 1 : 0;
  }
  if (infinite != 0) atomicAdd(counts, infinite);
  if (nan != 0) atomicAdd(counts + 1, nan);
}

}  // namespace

void adamw_step(const Context& on, float* master, float* m, float* v, Ptr param16, ConstPtr grad,
                std::int64_t n, const AdamW& settings) {
  if (n == 0) return;
  const AdamWScalars s = adamw_scalars(settings);
  with_type("adamw_step", grad.type, [&](auto grad_tag) {
    using Grad = decltype(grad_tag);
    const auto* g = static_cast<const Grad*>(grad.data);
    if (param16.data == nullptr) {
      return launch_adamw(on, master, m, v, static_cast<NoCopy*>(nullptr), g, n, s);
    }
    with_type("adamw_step", param16.type, [&](auto param_tag) {
      using Param = decltype(param_tag);
      launch_adamw(on, master, m, v, static_cast<Param*>(param16.data), g, n, s);
    });
  });
}

void squared_norm(const Context& on, double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n) {
  if (n == 0) return;
  std::int64_t piece = (n + kMostPieces - 1) / kMostPieces;
  piece = piece < kLeastPiece ? kLeastPiece : piece;
  const std::int64_t pieces = (n + piece - 1) / piece;
  auto* partial = static_cast<double*>(on.workspace());
  with_type("squared_norm", x.type, [&](auto tag) {
    using T = decltype(tag);
    norm_kernel<<<static_cast<unsigned>(pieces), kNormThreads, 0, stream_of(on)>>>(
        partial, bad, static_cast<const T*>(x.data), n, piece);
  });
  add_partials<<<1, kNormThreads, 0, stream_of(on)>>>(sum, partial, pieces);
  check_launch("squared_norm");
}

void count_not_finite(const Context& on, NotFiniteCount* counts, ConstPtr x, std::int64_t n) {
  static_assert(sizeof(NotFiniteCount) == 2 * sizeof(unsigned long long));
  if (n == 0) return;
  const std::int64_t blocks = (n + kLeastPiece - 1) / kLeastPiece;
  const auto grid = static_cast<unsigned>(blocks < kMostPieces ? blocks : kMostPieces);
  with_type("count_not_finite", x.type, [&](auto tag) {
    using T = decltype(tag);
    not_finite_kernel<<<grid, kNormThreads, 0, stream_of(on)>>>(reinterpret_cast<unsigned long long*>(counts),
                                                                static_cast<const T*>(x.data), n);
  });
  check_launch("count_not_finite");
}

}  // namespace shardscope::kernels::cuda
