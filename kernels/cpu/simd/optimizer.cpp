// One AdamW step on a range of a shard. Streams four to five arrays once; the types of gradient and 16-bit
// copy are template arguments, so that no staging is needed. The arrays are prefetched one after the other, a
// block of each: in lockstep, DRAM would open another row for every line, which takes a third longer on an
// AMD EPYC (Zen 4).
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

// Elements of each array prefetched ahead, equal to the number being updated: all fit the second-level cache.
constexpr std::int64_t kAhead = 2048;
constexpr std::int64_t kQuarter = kAhead / 4;  ///< each prefetches one of the four arrays read
constexpr std::size_t kLine = 64;

// Weight and both moments after the step.
struct Moments {
  vf w, m, v;
};

// The operations and their order are those of kernels/cuda/optimizer.cu; both round equally, except for the
// baseline without fused multiply-adds. w decays by lr * weight_decay (decoupled) or the gradient gets w *
// l2; the other factor is 1 or 0.
SHARDSCOPE_INLINE Moments update(vf w, vf m, vf v, vf g, const AdamWScalars& s) {
  g = g * s.grad_scale;
  g = fma(w, set1(s.l2), g);
  w = w * s.decay;
  m = fma(m, set1(s.beta1), g * s.one_minus_beta1);
  v = fma(v, set1(s.beta2), g * g * s.one_minus_beta2);
  const vf denominator = fma(sqrt(v), set1(s.inv_sqrt_bias2), set1(s.epsilon));
  w = w - (m * s.step_size) / denominator;
  return {w, m, v};
}

/// Prefetches the share of one vector in a quarter: four vectors of `ahead`, into the second-level
/// cache.
template <typename T>
SHARDSCOPE_INLINE void ask_for(const T* ahead) {
  for (std::size_t at = 0; at < 4 * W * sizeof(T); at += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(ahead) + at, 0, 2);
  }
}

template <class Grad, class Param, bool kWriteParam>
[[gnu::always_inline]] inline void run(float* master, float* m, float* v, typename Param::Storage* param16,
                                       const typename Grad::Storage* grad, std::int64_t n,
                                       const AdamWScalars& given) {
  // A copy: stores to float arrays cannot alias it, so it stays in registers.
  const AdamWScalars s = given;
  const auto update_at = [&](std::int64_t i) {
    const Moments next = update(load(master + i), load(m + i), load(v + i), Grad::load(grad + i), s);
    store(master + i, next.w);
    store(m + i, next.m);
    store(v + i, next.v);
    if constexpr (kWriteParam) Param::store(param16 + i, next.w);
  };
  std::int64_t i = 0;
  // Updates kAhead elements and prefetches the next kAhead, one array per quarter. 4 j indexes the whole
  // array, since a quarter updates only a fourth of it.
  for (; i + 2 * kAhead <= n; i += kAhead) {
    const auto quarter = [&](std::int64_t begin, const auto* array) {
      for (std::int64_t j = 0; j < kQuarter; j += W) {
        ask_for(array + i + kAhead + 4 * j);
        update_at(i + begin + j);
      }
    };
    quarter(0, master);
    quarter(kQuarter, m);
    quarter(2 * kQuarter, v);
    quarter(3 * kQuarter, grad);
  }
  for (; i + W <= n; i += W) update_at(i);
  if (i < n) {
    const std::int64_t rest = n - i;
    const Moments next = update(load_partial(master + i, rest), load_partial(m + i, rest),
                                load_partial(v + i, rest), load_partial<Grad>(grad + i, rest), s);
    store_partial(master + i, next.w, rest);
    store_partial(m + i, next.m, rest);
    store_partial(v + i, next.v, rest);
    if constexpr (kWriteParam) store_partial<Param>(param16 + i, next.w, rest);
  }
}

}  // namespace

void adamw(float* master, float* m, float* v, void* param16, DType param16_type, const void* grad,
           DType grad_type, std::int64_t n, const AdamWScalars& scalars) {
  with_type(grad_type, [&](auto grad_tag) {
    using Grad = decltype(grad_tag);
    const auto* g = static_cast<const typename Grad::Storage*>(grad);
    if (param16 == nullptr) {
      run<Grad, F32, false>(master, m, v, nullptr, g, n, scalars);
      return;
    }
    with_type(param16_type, [&](auto param_tag) {
      using Param = decltype(param_tag);
      run<Grad, Param, true>(master, m, v, static_cast<typename Param::Storage*>(param16), g, n, scalars);
    });
  });
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
