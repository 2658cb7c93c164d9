// One AdamW step on a range of a shard. Streams four to five arrays once; the types of gradient and 16-bit
// copy are template arguments so that nothing is staged.
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {
namespace {

struct Moments {
  vf w, m, v;
};

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

template <class Grad, class Param, bool kWriteParam>
[[gnu::always_inline]] inline void run(float* master, float* m, float* v, typename Param::Storage* param16,
                                       const typename Grad::Storage* grad, std::int64_t n,
                                       const AdamWScalars& given) {
  const AdamWScalars s = given;
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    const Moments next = update(load(master + i), load(m + i), load(v + i), Grad::load(grad + i), s);
    store(master + i, next.w);
    store(m + i, next.m);
    store(v + i, next.v);
    if constexpr (kWriteParam) Param::store(param16 + i, next.w);
  }
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
