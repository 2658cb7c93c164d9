// Losses and their gradients, row by row; sums over rows in double.
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vec.h"

namespace shardscope::kernels::cpu::SHARDSCOPE_ISA {

// loss of a row = log(sum of exp(x - top)) + top - x[target]; its gradient, which overwrites the logits, is
// (softmax - one_hot) * factor. Three passes over a row of V floats, which for 16-bit logits is a copy in
// `row`: the maximum, the exponentials and their sum, the scaling. The maximum is subtracted so that no
// exponential overflows.
double cross_entropy(void* logits, DType type, const std::int32_t* target, std::int64_t rows, std::int64_t V,
                     float factor, float* row) {
  double loss = 0.0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = stage_in(logits, type, r * V, V, row);
    float* result = stage_place(logits, type, r * V, row);
    if (target[r] < 0) {  // ignored
      for (std::int64_t i = 0; i < V; ++i) result[i] = 0.0F;
      stage_out(logits, type, r * V, V, result);
      continue;
    }
    vf largest = set1(-__builtin_inff());
    std::int64_t i = 0;
    for (; i + W <= V; i += W) largest = max(load(in + i), largest);
    float top = max_lane(largest);
    for (; i < V; ++i) top = in[i] > top ? in[i] : top;
    // Read now: fp32 logits are overwritten by the exponentials.
    const float logit = in[target[r]];

    vf total{};
    for (i = 0; i + W <= V; i += W) {
      const vf e = exp(load(in + i) - top);
      total += e;
      store(result + i, e);
    }
    if (i < V) {
      const std::int64_t rest = V - i;
      const vf e = exp(load_partial(in + i, rest) - top);
      // Lanes after the end hold exp(0 - top), which is not part of the sum.
      total += lane_index() < static_cast<std::int32_t>(rest) ? e : vf{};
      store_partial(result + i, e, rest);
    }
    const float denominator = sum(total);
    // Terms in double: log and top may cancel with the logit.
    loss += static_cast<double>(__builtin_logf(denominator)) + static_cast<double>(top) -
            static_cast<double>(logit);

    // One division per row.
    const float k = factor / denominator;
    for (i = 0; i + W <= V; i += W) store(result + i, load(result + i) * k);
    if (i < V) store_partial(result + i, load_partial(result + i, V - i) * k, V - i);
    result[target[r]] -= factor;
    stage_out(logits, type, r * V, V, result);
  }
  return loss;
}

// Squares of fp32 differences are exact in double. A single chain of additions, in index order.
double mse(void* dx, DType dx_type, const void* x, DType x_type, const float* target, std::int64_t n,
           float factor) {
  alignas(64) float in[kBlock];
  alignas(64) float result[kBlock];
  double loss = 0.0;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    const float* src = stage_in(x, x_type, i, count, in);
    float* dst = stage_place(dx, dx_type, i, result);
    for (std::int64_t j = 0; j < count; ++j) {
      const float difference = src[j] - target[i + j];
      loss += static_cast<double>(difference) * static_cast<double>(difference);
      dst[j] = difference * factor;
    }
    stage_out(dx, dx_type, i, count, dst);
  }
  return loss;
}

}  // namespace shardscope::kernels::cpu::SHARDSCOPE_ISA
