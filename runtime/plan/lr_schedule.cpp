#include "runtime/plan/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace shardscope::plan {
namespace {

// Below, `last` is DeepSpeed's last_batch_iteration: the step before this one, -1 before the first.

// At least 2: the logarithmic shape divides by log(steps), and log(1) is 0.
std::int64_t warmup_steps(const LrSchedule& s) { return std::max<std::int64_t>(2, s.warmup_num_steps); }

/// 0 at the start of the warm-up, towards 1 at its end.
double warmup_gamma(const LrSchedule& s, std::int64_t last) {
  const auto steps = static_cast<double>(warmup_steps(s));
  switch (s.warmup_shape) {
    // 0 at last = 0 and 1 at last = steps - 1, the last step of the warm-up.
    case WarmupShape::log:
      return 1.0 / std::log(steps) * std::log(static_cast<double>(last + 1));
    // (steps - 1) / steps at most.
    case WarmupShape::linear:
      return static_cast<double>(last) / steps;
  }
  return 1;
}

double warmup_lr(const LrSchedule& s, std::int64_t last) {
  if (last < 0) return s.warmup_min_lr;
  double gamma = 1;
  if (last < warmup_steps(s)) {
    gamma = warmup_gamma(s, last);
  } else if (s.type == LrScheduleType::warmup_decay) {
    const auto left = static_cast<double>(s.total_num_steps - last);
    // The rate falls to warmup_min_lr at total_num_steps and stays there. max(1, ...) for a total within the
    // warm-up, where no step is left to divide by.
    gamma = std::max(0.0, left / std::max(1.0, static_cast<double>(s.total_num_steps - warmup_steps(s))));
  }
  return s.warmup_min_lr + (s.warmup_max_lr - s.warmup_min_lr) * gamma;
}

// Ratios of base_lr, the optimizer's own rate, unlike WarmupLR's absolute rates.
double cosine_lr(const LrSchedule& s, double base_lr, std::int64_t last) {
  if (last < 0) return 0;
  if (last < warmup_steps(s)) {
    return base_lr * (s.warmup_min_ratio + warmup_gamma(s, last) * (1 - s.warmup_min_ratio));
  }
  // 1 on the first step after the warm-up, `total` where last is total_num_steps - 1.
  const auto done = static_cast<double>(last - warmup_steps(s) + 1);
  const auto total = static_cast<double>(std::max<std::int64_t>(1, s.total_num_steps - warmup_steps(s)));
  // Past the end the rate stays at its floor instead of swinging up again.
  const double ratio = (1 + std::cos(std::numbers::pi * std::min(1.0, done / total))) / 2;
  return base_lr * std::max(0.0, s.cos_min_ratio + (1 - s.cos_min_ratio) * ratio);
}

double range_test_lr(const LrSchedule& s, std::int64_t last) {
  double interval = static_cast<double>(last + 1) / static_cast<double>(s.range_step_size);
  // Rates climb by range_step_rate per interval of range_step_size steps: linear, or in stairs.
  if (s.range_staircase) interval = std::floor(interval);
  return s.range_min_lr * (1 + s.range_step_rate * interval);
}

struct Cycle {
  double first = 0;
  double second = 0;
  [[nodiscard]] double total() const { return first + second; }
};

// In steps. The second part is as long as the first unless it is given; 0 is a cycle that only rises.
Cycle cycle_of(const LrSchedule& s) {
  return {static_cast<double>(s.cycle_first_step_size),
          static_cast<double>(s.cycle_second_step_size.value_or(s.cycle_first_step_size))};
}

/// 0 at the ends of the cycle, 1 at its peak.
double cycle_height(const LrSchedule& s, std::int64_t last) {
  const Cycle cycle = cycle_of(s);
  const auto batch = static_cast<double>(last + 1);
  // Position in the cycle, in [0, 1): the fractional part of batch / total, in DeepSpeed's form.
  const double x = 1.0 + batch / cycle.total() - std::floor(1 + batch / cycle.total());
  const double ratio = cycle.first / cycle.total();
  // With a second part of 0 steps `ratio` is 1 and every x rises: neither division by it below is reached.
  const bool rising = x <= ratio;
  const std::int64_t stairs =
      rising ? s.cycle_first_stair_count : s.cycle_second_stair_count.value_or(s.cycle_first_stair_count);
  if (stairs > 0) {
    // From the whole step, not from x: a rounding error at the peak would cost a whole stair.
    const double at = std::fmod(batch, cycle.total());
    // From the begin of the cycle while it rises, from its end while it falls; floor() below rounds to whole
    // stairs.
    const double position = at <= cycle.first
                                ? at * static_cast<double>(stairs) / cycle.first
                                : (cycle.total() - at) * static_cast<double>(stairs) / cycle.second;
    return std::floor(position) / static_cast<double>(stairs);
  }
  return rising ? x / ratio : (x - 1) / (ratio - 1);
}

// There is only one cycle: after it the rate decays and does not rise again.
bool in_cycle(const LrSchedule& s, std::int64_t last) {
  return static_cast<double>(last) < cycle_of(s).total();
}

/// Length of the decay after the cycle so far, in units of decay_step_size.
double decay_interval(const LrSchedule& s, std::int64_t last) {
  return (static_cast<double>(last) - cycle_of(s).total() + 1) / static_cast<double>(s.decay_step_size);
}

double one_cycle_lr(const LrSchedule& s, std::int64_t last) {
  if (in_cycle(s, last)) return s.cycle_min_lr + (s.cycle_max_lr - s.cycle_min_lr) * cycle_height(s, last);
  if (s.decay_step_size == 0 || s.decay_lr_rate == 0) return s.cycle_min_lr;
  // Decay begins at cycle_min_lr, where the cycle ended: the interval is above 0 from the first step after
  // it.
  return s.cycle_min_lr / (1 + s.decay_lr_rate * decay_interval(s, last));
}

}  // namespace

void check(const LrSchedule& s) {
  const auto positive = [](const char* key, std::int64_t value) {
    if (value < 1) {
      throw std::invalid_argument(std::string("scheduler.params.") + key + " is " + std::to_string(value) +
                                  "; it must be at least 1");
    }
  };
  switch (s.type) {
    case LrScheduleType::constant:
      break;
    // Each of these is a divisor.
    case LrScheduleType::lr_range_test:
      positive("lr_range_test_step_size", s.range_step_size);
      break;
    case LrScheduleType::one_cycle:
      // Ensures a cycle length above 0 even if the second part is 0.
      positive("cycle_first_step_size", s.cycle_first_step_size);
      if (s.cycle_second_step_size.value_or(0) < 0) {
        throw std::invalid_argument("scheduler.params.cycle_second_step_size is " +
                                    std::to_string(*s.cycle_second_step_size) + "; it must be at least 0");
      }
      break;
    case LrScheduleType::warmup_decay:
    case LrScheduleType::warmup_cosine:
      positive("total_num_steps", s.total_num_steps);
      positive("warmup_num_steps", s.warmup_num_steps);
      break;
    case LrScheduleType::warmup:
      positive("warmup_num_steps", s.warmup_num_steps);
      break;
  }
}

double learning_rate(const LrSchedule& schedule, double base_lr, std::int64_t step) {
  const std::int64_t last = step - 1;
  switch (schedule.type) {
    case LrScheduleType::constant:
      return base_lr;
    case LrScheduleType::lr_range_test:
      return range_test_lr(schedule, last);
    case LrScheduleType::one_cycle:
      return one_cycle_lr(schedule, last);
    case LrScheduleType::warmup:
    case LrScheduleType::warmup_decay:
      return warmup_lr(schedule, last);
    case LrScheduleType::warmup_cosine:
      return cosine_lr(schedule, base_lr, last);
  }
  return base_lr;
}

std::optional<double> momentum(const LrSchedule& schedule, std::int64_t step) {
  if (schedule.type != LrScheduleType::one_cycle || !schedule.cycle_momentum) return std::nullopt;
  const std::int64_t last = step - 1;
  if (last < 0) return schedule.cycle_min_mom;  // what DeepSpeed's constructor sets
  if (in_cycle(schedule, last)) {
    // Inverse to the rate: lowest where the rate is highest.
    return schedule.cycle_max_mom -
           (schedule.cycle_max_mom - schedule.cycle_min_mom) * cycle_height(schedule, last);
  }
  if (schedule.decay_step_size == 0) return schedule.cycle_max_mom;
  // Grows with decay_mom_rate per decay_step_size steps after the cycle, while the rate falls.
  return schedule.cycle_max_mom * (1 + schedule.decay_mom_rate * decay_interval(schedule, last));
}

}  // namespace shardscope::plan
