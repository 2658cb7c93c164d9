#include "runtime/plan/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace shardscope::plan {

bool skips_overflow(const SkipRule& rule) noexcept {
  if (rule.fp16) return true;
  return rule.bf16_checked && !(rule.stage == 3 && rule.stage3_skips_fp16_only);
}

UnscaleOrder norm_order(UnscaleOrder order, std::uint32_t stage) noexcept {
  return stage == 3 ? order : UnscaleOrder::made_with;
}

LossScaler::LossScaler(const LossScaleConfig& config) : config_(config), hysteresis_(config.hysteresis) {
  const auto check = [](bool good, const char* key, double value, const char* wanted) {
    if (!good) {
      throw std::invalid_argument(std::string("fp16.") + key + " is " + std::to_string(value) +
                                  "; it must be " + wanted);
    }
  };
  check(config.loss_scale >= 0, "loss_scale", config.loss_scale, "0 (dynamic) or above");
  check(config.window >= 1, "loss_scale_window", static_cast<double>(config.window), "at least 1");
  check(config.hysteresis >= 0, "hysteresis", static_cast<double>(config.hysteresis), "at least 0");
  check(config.min_loss_scale > 0, "min_loss_scale", config.min_loss_scale, "above 0");
  check(config.factor > 1, "scale factor", config.factor, "above 1");
  check(config.initial_scale_power >= 0 && config.initial_scale_power <= 127, "initial_scale_power",
        static_cast<double>(config.initial_scale_power), "0 to 127");
  dynamic_ = config.loss_scale == 0;
  scale_ = dynamic_ ? std::ldexp(1.0, static_cast<int>(config.initial_scale_power)) : config.loss_scale;
}

LossScaler LossScaler::none() {
  LossScaleConfig config;
  config.loss_scale = 1;
  return LossScaler(config);
}

LossScaler::Step LossScaler::update(bool overflow) {
  Step step;
  step.skip = overflow;
  const double before = scale_;
  if (dynamic_) {
    if (overflow) {
      if (config_.hysteresis == 1 || hysteresis_ == 1) {
        if (scale_ == config_.min_loss_scale) {
          throw LossScaleError("Current loss scale already at minimum (" + std::to_string(scale_) +
                               ") and gradients overflow again: training diverges; lower the learning rate, "
                               "clip gradients, or "
                               "train in bf16");
        }
        scale_ = std::max(scale_ / config_.factor, config_.min_loss_scale);
      } else {
        --hysteresis_;
      }
      last_overflow_ = iteration_;
    } else {
      if (config_.consecutive_hysteresis) hysteresis_ = config_.hysteresis;
      const std::int64_t clean = iteration_ - last_overflow_ - 1;
      if (clean > 0 && clean % config_.window == 0) {
        if (!config_.consecutive_hysteresis) hysteresis_ = config_.hysteresis;
        scale_ *= config_.factor;
      }
    }
    ++iteration_;
  }
  step.unscale_by = config_.order == UnscaleOrder::updated ? scale_ : before;
  step.norm_by = config_.norm_order == UnscaleOrder::updated ? scale_ : before;
  step.next_scale = scale_;
  step.scale_changed = scale_ != before;
  return step;
}

void LossScaler::restore(const Saved& saved) noexcept {
  scale_ = saved.scale;
  hysteresis_ = saved.hysteresis;
  iteration_ = saved.iteration;
  last_overflow_ = saved.last_overflow;
}

}  // namespace shardscope::plan
