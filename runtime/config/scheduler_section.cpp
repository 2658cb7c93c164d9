// The learning-rate schedule: DeepSpeed's `scheduler` read into plan::LrSchedule, which computes the rates.
// Keys and defaults: deepspeed/runtime/lr_schedules.py.
#include <array>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

using plan::LrSchedule;
using plan::LrScheduleType;

constexpr double kLargestBeta = 1 - 1e-12;

void read_warmup(Section& params, LrSchedule& s) {
  params.read("warmup_num_steps", s.warmup_num_steps, 1, kMostSteps);
  params.read_enum("warmup_type", {"log", "linear"}, [&](std::size_t i) {
    s.warmup_shape = i == 0 ? plan::WarmupShape::log : plan::WarmupShape::linear;
  });
}

void read_total_steps(Section& params, LrSchedule& s, const ParseOptions& options) {
  if (params.is_auto("total_num_steps") && options.total_steps > 0) s.total_num_steps = options.total_steps;
  params.read("total_num_steps", s.total_num_steps, 1, kMostSteps);
  if (s.total_num_steps == 0) {
    params.fail("total_num_steps", "missing: give the number of training steps, or \"auto\" with --steps");
  }
}

/// A number for all parameter groups, or a list with one for each.
void read_of_group(Section& params, const char* key, double& value, double max, GroupIndex group) {
  const nlohmann::json* found = params.find(key);
  if (found == nullptr || !found->is_array()) return params.read(key, value, 0, max);
  if (found->size() != group.count) {
    return params.fail(key, "has " + std::to_string(found->size()) + " values, but the parameters are in " +
                                std::to_string(group.count) + (group.count == 1 ? " group" : " groups") +
                                " (shardscope.param_groups); give one number, or one for each group");
  }
  const nlohmann::json& own = (*found)[group.index];
  if (!own.is_number() || !(own.get<double>() >= 0 && own.get<double>() <= max)) {
    return params.fail(key, "value " + std::to_string(group.index) + " is " + own.dump() +
                                "; it must be a number from 0 to " + nlohmann::json(max).dump());
  }
  value = own.get<double>();
}

void read_range_test(Section& params, LrSchedule& s, GroupIndex group) {
  read_of_group(params, "lr_range_test_min_lr", s.range_min_lr, kLargestRate, group);
  params.read("lr_range_test_step_size", s.range_step_size, 1, kMostSteps);
  params.read("lr_range_test_step_rate", s.range_step_rate, 0, kLargestRate);
  params.read("lr_range_test_staircase", s.range_staircase);
}

template <typename T>
void read_optional(Section& params, const char* key, std::optional<T>& value, T min) {
  if (params.find(key) == nullptr || params.is_auto(key)) return;
  T read{};
  params.read(key, read, min, kMostSteps);
  value = read;
}

void read_one_cycle(Section& params, LrSchedule& s, GroupIndex group) {
  for (const char* key : {"cycle_min_lr", "cycle_max_lr"}) {
    if (params.find(key) == nullptr) params.fail(key, "missing: OneCycle needs it");
  }
  read_of_group(params, "cycle_min_lr", s.cycle_min_lr, kLargestRate, group);
  read_of_group(params, "cycle_max_lr", s.cycle_max_lr, kLargestRate, group);
  params.read("decay_lr_rate", s.decay_lr_rate, 0, kLargestRate);
  params.read("cycle_first_step_size", s.cycle_first_step_size, 1, kMostSteps);
  read_optional<std::int64_t>(params, "cycle_second_step_size", s.cycle_second_step_size, 0);
  params.read("cycle_first_stair_count", s.cycle_first_stair_count, 0, kMostSteps);
  read_optional<std::int64_t>(params, "cycle_second_stair_count", s.cycle_second_stair_count, 0);
  params.read("decay_step_size", s.decay_step_size, 0, kMostSteps);
  params.read("cycle_momentum", s.cycle_momentum);
  read_of_group(params, "cycle_min_mom", s.cycle_min_mom, kLargestBeta, group);
  read_of_group(params, "cycle_max_mom", s.cycle_max_mom, kLargestBeta, group);
  params.read("decay_mom_rate", s.decay_mom_rate, 0, kLargestRate);
}

/// Momentum only grows after the cycle, so checking the last step of the run is enough.
void check_momentum(const Section& params, const LrSchedule& s, const ParseOptions& options) {
  if (options.total_steps < 1) return;
  const double last = plan::momentum(s, options.total_steps - 1).value_or(0);
  if (last < 1) return;
  params.fail("decay_mom_rate", "moves Adam's beta1 to " + std::to_string(last) + " by step " +
                                    std::to_string(options.total_steps) +
                                    ", but it must stay below 1; lower it or raise decay_step_size");
}

}  // namespace

const char* schedule_name(LrScheduleType type) noexcept {
  switch (type) {
    case LrScheduleType::constant:
      return "";
    case LrScheduleType::lr_range_test:
      return "LRRangeTest";
    case LrScheduleType::one_cycle:
      return "OneCycle";
    case LrScheduleType::warmup:
      return "WarmupLR";
    case LrScheduleType::warmup_decay:
      return "WarmupDecayLR";
    case LrScheduleType::warmup_cosine:
      return "WarmupCosineLR";
  }
  return "?";
}

LrSchedule read_scheduler(Section section, const OptimizerConfig& optimizer, const ParseOptions& options,
                          GroupIndex group) {
  static constexpr std::array types{LrScheduleType::warmup, LrScheduleType::warmup_decay,
                                    LrScheduleType::warmup_cosine, LrScheduleType::lr_range_test,
                                    LrScheduleType::one_cycle};
  std::vector<std::string> names;
  for (const LrScheduleType type : types) names.emplace_back(schedule_name(type));
  LrSchedule s;
  if (section.find("type") == nullptr) section.fail("type", "missing: give a schedule such as \"WarmupLR\"");
  section.read_enum("type", names, [&](std::size_t i) { s.type = types.at(i); });

  Section params = section.child_or_empty("params");
  switch (s.type) {
    case LrScheduleType::constant:
      section.fail("type", "missing: give a schedule such as \"WarmupLR\"");
      break;
    case LrScheduleType::warmup_decay:
      read_total_steps(params, s, options);
      [[fallthrough]];
    case LrScheduleType::warmup:
      s.warmup_max_lr = optimizer.lr;
      read_of_group(params, "warmup_min_lr", s.warmup_min_lr, kLargestRate, group);
      read_of_group(params, "warmup_max_lr", s.warmup_max_lr, kLargestRate, group);
      read_warmup(params, s);
      break;
    case LrScheduleType::warmup_cosine:
      read_total_steps(params, s, options);
      params.read("warmup_min_ratio", s.warmup_min_ratio, 0, 1);
      params.read("cos_min_ratio", s.cos_min_ratio, 0, 1);
      read_warmup(params, s);
      break;
    case LrScheduleType::lr_range_test:
      read_range_test(params, s, group);
      break;
    case LrScheduleType::one_cycle:
      read_one_cycle(params, s, group);
      check_momentum(params, s, options);
      break;
  }
  if (const nlohmann::json* last = params.find("last_batch_iteration"); last != nullptr && *last != -1) {
    params.fail("last_batch_iteration", "must be -1: a schedule starts at its beginning");
  }
  params.finish();
  section.finish();
  try {
    plan::check(s);
  } catch (const std::invalid_argument& error) {
    section.fail("params", error.what());
  }
  return s;
}

}  // namespace shardscope::config
