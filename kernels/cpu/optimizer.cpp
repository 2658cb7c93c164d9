#include <cmath>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace shardscope::kernels::cpu {

void adamw_step(int threads, float* master, float* m, float* v, Ptr param16, ConstPtr grad, std::int64_t n,
                const AdamW& settings) {
  // Bias corrections in double, as PyTorch computes them: in fp32, 1 - 0.999^t loses four digits at t = 1.
  const double lr = settings.lr;
  const double beta1 = settings.beta1;
  const double beta2 = settings.beta2;
  const double t = static_cast<double>(settings.step);
  const AdamWScalars scalars{
      .beta1 = settings.beta1,
      .one_minus_beta1 = static_cast<float>(1.0 - beta1),
      .beta2 = settings.beta2,
      .one_minus_beta2 = static_cast<float>(1.0 - beta2),
      .step_size = static_cast<float>(lr / (1.0 - std::pow(beta1, t))),
      .inv_sqrt_bias2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, t))),
      .epsilon = settings.epsilon,
      .grad_scale = settings.grad_scale,
      .decay = settings.decoupled ? static_cast<float>(1.0 - lr * static_cast<double>(settings.weight_decay))
                                  : 1.0F,
      .l2 = settings.decoupled ? 0.0F : settings.weight_decay,
  };
  parallel_ranges(threads, n, 1024, 1 << 16, [&](std::int64_t begin, std::int64_t end, int) {
    vector_kernels().adamw(master + begin, m + begin, v + begin,
                           param16.data == nullptr ? nullptr : at(param16.data, size_of(param16.type), begin),
                           param16.type, at(grad.data, size_of(grad.type), begin), grad.type, end - begin,
                           scalars);
  });
}

void squared_norm(double* sum, std::uint32_t* bad, ConstPtr x, std::int64_t n) {
  std::uint32_t found = 0;
  *sum += vector_kernels().squared_norm(&found, x.data, x.type, n);
  *bad |= found;
}

}  // namespace shardscope::kernels::cpu
