// Scalars of an AdamW step, computed once on the host: every backend uses the same values. Together with
// equal operations in equal order (cuda/optimizer.cu, cpu/simd/optimizer.cpp) that makes the backends agree
// bitwise.
#pragma once

#include <cmath>

#include "kernels/ops.h"

namespace shardscope::kernels {

struct AdamWScalars {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float step_size;       ///< lr / (1 - beta1^t)
  float inv_sqrt_bias2;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon, grad_scale;
  float decay;  ///< 1 - lr * weight_decay when decoupled, else 1
  float l2;     ///< weight_decay when not decoupled, else 0
};

/// Bias corrections in double, as PyTorch computes them: in fp32, 1 - 0.999^t loses four digits at t = 1.
[[nodiscard]] inline AdamWScalars adamw_scalars(const AdamW& settings) {
  const double lr = settings.lr;
  const double beta1 = settings.beta1;
  const double beta2 = settings.beta2;
  const double t = static_cast<double>(settings.step);
  return {
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
}

}  // namespace shardscope::kernels
