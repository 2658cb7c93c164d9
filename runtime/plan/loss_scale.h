// The loss scale of fp16 training (docs/zero.md L1; deepspeed/runtime/fp16/loss_scaler.py).
#pragma once

#include <cstdint>
#include <stdexcept>

namespace shardscope::plan {

/// The scale by which a step's gradients are divided (docs/zero.md D8).
enum class UnscaleOrder : std::uint8_t {
  made_with,  ///< the scale by which the loss was multiplied
  updated,    ///< DeepSpeed: the scale after this step's update; halves gradients on a growth step
};

/// Decides whether a step with non-finite gradients is skipped (1.4).
struct SkipRule {
  std::uint32_t stage = 0;
  bool fp16 = false;
  bool bf16_checked = false;            ///< bf16 with check_grad_overflow
  bool stage3_skips_fp16_only = false;  ///< CompatSwitches
};
/// fp16 always skips, since the scale is found by trial. bf16 skips where it is checked. fp32 never skips, as
/// a later step would be no different: the non-finite gradient is applied and so becomes visible.
[[nodiscard]] bool skips_overflow(const SkipRule& rule) noexcept;

struct LossScaleConfig {
  double loss_scale = 0;  ///< above 0: static
  std::int64_t initial_scale_power = 16;
  std::int64_t window = 1000;
  /// Number of overflows until the scale falls, the one it falls with included. With 0 it never falls, as in
  /// DeepSpeed's class; no configuration can set that.
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1;
  double factor = 2;
  UnscaleOrder order = UnscaleOrder::made_with;
  UnscaleOrder norm_order = UnscaleOrder::made_with;  ///< for the reported norm
};

/// The scale cannot fall further: training diverges.
class LossScaleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The scale by which the reported norm is divided: the old one in DeepSpeed's stages 1 and 2, the new one in
/// its stage 3 (docs/zero.md D8).
[[nodiscard]] UnscaleOrder norm_order(UnscaleOrder order, std::uint32_t stage) noexcept;

class LossScaler {
 public:
  /// What an optimizer step does.
  struct Step {
    bool skip = false;      ///< gradients overflowed: no update of parameters
    double unscale_by = 1;  ///< divide gradients by this
    double norm_by = 1;     ///< divide the reported norm by this
    double next_scale = 1;  ///< multiply the next loss by this
    bool scale_changed = false;
  };

  /// Throws std::invalid_argument on invalid values.
  explicit LossScaler(const LossScaleConfig& config);
  /// A scaler with the constant scale 1 (fp32, bf16).
  [[nodiscard]] static LossScaler none();

  [[nodiscard]] double scale() const noexcept { return scale_; }
  [[nodiscard]] bool dynamic() const noexcept { return dynamic_; }
  [[nodiscard]] std::int64_t hysteresis() const noexcept { return hysteresis_; }
  [[nodiscard]] std::int64_t iteration() const noexcept { return iteration_; }
  [[nodiscard]] std::int64_t last_overflow() const noexcept { return last_overflow_; }

  /// One optimizer step whose gradients overflowed on some rank, or on none. Throws LossScaleError, changing
  /// nothing, when the scale is at its minimum and would have to fall.
  Step update(bool overflow);

  /// For checkpoints: a restored scaler continues as the saved one would have.
  struct Saved {
    double scale = 1;
    std::int64_t hysteresis = 2;
    std::int64_t iteration = 0;
    std::int64_t last_overflow = -1;
  };
  [[nodiscard]] Saved save() const noexcept { return {scale_, hysteresis_, iteration_, last_overflow_}; }
  void restore(const Saved& saved) noexcept;

 private:
  LossScaleConfig config_;
  bool dynamic_ = true;
  double scale_ = 1;
  std::int64_t hysteresis_ = 2;
  std::int64_t iteration_ = 0;
  std::int64_t last_overflow_ = -1;
};

}  // namespace shardscope::plan
