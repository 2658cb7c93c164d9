#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/workspace.h"

namespace shardscope::kernels::cpu {

void cross_entropy(float* loss, Ptr logits, const std::int32_t* target, std::int64_t N, std::int64_t V,
                   float grad_scale, std::int64_t ignored) {
  // 0 if all are ignored: the mean is 0 / 0 = NaN, and no row uses the factor.
  const double rows = static_cast<double>(N - ignored);
  // On the calling thread, in row order. The factor is computed in double and rounded once.
  const double sum = vector_kernels().cross_entropy(
      logits.data, logits.type, target, N, V, static_cast<float>(static_cast<double>(grad_scale) / rows),
      workspace_floats(Slot::row, V));
  *loss = static_cast<float>(sum / rows);
}

void mse(float* loss, Ptr dx, ConstPtr x, const float* target, std::int64_t n, float grad_scale) {
  const double count = static_cast<double>(n);
  const double sum = vector_kernels().mse(dx.data, dx.type, x.data, x.type, target, n,
                                          static_cast<float>(2.0 * static_cast<double>(grad_scale) / count));
  *loss = static_cast<float>(sum / count);
}

}  // namespace shardscope::kernels::cpu
