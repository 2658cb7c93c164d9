#include "runtime/engine/loss_scaler.h"

namespace shardscope::engine {

plan::LossScaler make_scaler(const config::TrainingConfig& training) {
  const config::Fp16Config& fp16 = training.fp16;
  // L1: bf16 and fp32 have scale 1.
  if (!fp16.enabled) return plan::LossScaler::none();
  plan::LossScaleConfig config;
  config.loss_scale = fp16.loss_scale;
  config.initial_scale_power = fp16.initial_scale_power;
  config.window = fp16.loss_scale_window;
  config.hysteresis = fp16.hysteresis;
  config.consecutive_hysteresis = fp16.consecutive_hysteresis;
  config.min_loss_scale = fp16.min_loss_scale;
  // D8: the scale that gradients are divided by when it has just changed.
  config.order = training.zero.compat.update_scale_before_unscale ? plan::UnscaleOrder::updated
                                                                  : plan::UnscaleOrder::made_with;
  config.norm_order = plan::norm_order(config.order, training.zero.stage);
  return plan::LossScaler(config);
}

}  // namespace shardscope::engine
