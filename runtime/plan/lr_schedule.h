// DeepSpeed's learning-rate schedules as pure functions of the optimizer step
// (deepspeed/runtime/lr_schedules.py, 0.19). DeepSpeed's scheduler advances after the optimizer, but not
// after a step skipped for overflow: `step` counts the updates made before this one, from 0.
#pragma once

#include <cstdint>
#include <optional>

namespace shardscope::plan {

enum class LrScheduleType : std::uint8_t {
  constant,  ///< no scheduler: the optimizer's rate
  lr_range_test,
  one_cycle,
  warmup,
  warmup_decay,
  warmup_cosine,
};
enum class WarmupShape : std::uint8_t { log, linear };

/// Each type reads its own members; defaults are DeepSpeed's.
struct LrSchedule {
  LrScheduleType type = LrScheduleType::constant;
  // WarmupLR, WarmupDecayLR; WarmupCosineLR uses the step counts and the shape.
  double warmup_min_lr = 0;
  double warmup_max_lr = 1e-3;
  std::int64_t warmup_num_steps = 1000;
  WarmupShape warmup_shape = WarmupShape::log;
  std::int64_t total_num_steps = 0;
  // WarmupCosineLR: ratios of the optimizer's rate.
  double warmup_min_ratio = 0;
  double cos_min_ratio = 1e-4;
  // LRRangeTest
  double range_min_lr = 1e-3;
  std::int64_t range_step_size = 2000;
  double range_step_rate = 1;
  bool range_staircase = false;
  // OneCycle
  double cycle_min_lr = 0;
  double cycle_max_lr = 0;
  double decay_lr_rate = 0;
  std::int64_t cycle_first_step_size = 2000;
  std::optional<std::int64_t> cycle_second_step_size;  ///< default: the first
  std::int64_t cycle_first_stair_count = 0;            ///< 0: continuous
  std::optional<std::int64_t> cycle_second_stair_count;
  std::int64_t decay_step_size = 0;  ///< 0: no decay after the cycle
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0;
};

/// Throws std::invalid_argument on invalid step counts, naming DeepSpeed's key.
void check(const LrSchedule& schedule);

/// The rate of optimizer step `step`. `base_lr`: the optimizer's own; constant and WarmupCosineLR read it.
[[nodiscard]] double learning_rate(const LrSchedule& schedule, double base_lr, std::int64_t step);

/// Adam's second beta in a run whose first one is scheduled: DeepSpeed's OneCycle sets both.
inline constexpr double kOneCycleBeta2 = 0.99;

/// Adam's first beta at that step if it is scheduled (OneCycle with cycle_momentum), else nullopt.
[[nodiscard]] std::optional<double> momentum(const LrSchedule& schedule, std::int64_t step);

}  // namespace shardscope::plan
