// Readers of the sections of a DeepSpeed file. Each reads one object into its part of the settings and fails
// on unknown keys.
#pragma once

#include "runtime/config/config.h"
#include "runtime/config/json_section.h"

namespace shardscope::config {

/// Limits of steps and rates in a file: larger values are rejected as mistakes.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr double kLargestRate = 1e6;

/// The whole file. Warnings stay with the section's context.
[[nodiscard]] TrainingConfig read_config(Section root, const ParseOptions& options);

/// train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps with DeepSpeed's rules
/// (deepspeed/runtime/config.py, _set_batch_related_parameters and _batch_assertion).
/// `ranks` train one copy of the model.
[[nodiscard]] BatchConfig read_batch(Section& root, std::uint32_t ranks, const ParseOptions& options);
/// shardscope.data_parallel_groups, of `world` ranks.
void read_data_parallel_groups(Section& section, std::uint32_t world, plan::DataParallelGroups& groups);

void read_optimizer(Section section, OptimizerConfig& optimizer);
/// The parameter group to read if a key is a list with a value per group.
struct GroupIndex {
  std::size_t index = 0;
  std::size_t count = 1;
};
[[nodiscard]] plan::LrSchedule read_scheduler(Section section, const OptimizerConfig& optimizer,
                                              const ParseOptions& options, GroupIndex group);
/// The keys of a group's optimizer that groups share with optimizer.params: lr, eps, weight_decay, betas.
void read_group_settings(Section& section, OptimizerConfig& optimizer);
/// shardscope.param_groups, if present. Call after read_optimizer().
void read_param_groups(Section& section, TrainingConfig& config);
/// shardscope.micro_batches.
void read_micro_batches(Section section, plan::MicroBatches& micro_batches);
/// Warns about a group's own lr if the schedule sets the rate of all groups.
void warn_of_rates_without_effect(Section& root, const TrainingConfig& config);
/// DeepSpeed's name, "WarmupLR"; "" for a constant rate, which has none.
[[nodiscard]] const char* schedule_name(plan::LrScheduleType type) noexcept;
void read_precision(Section& root, TrainingConfig& config);
void read_data_types(Section& root, TrainingConfig& config);
void read_zero(Section section, plan::ZeroConfig& zero, const ParseOptions& options);
void read_aio(Section section, plan::AioConfig& aio);
void read_activation_checkpointing(Section section);
void read_shardscope(Section section, TrainingConfig& config);
/// Warns about switches of shardscope.compat without effect, and about keys that need a switch. Call after
/// reading both.
void warn_of_switches(Section& root, const plan::ZeroConfig& zero);
/// zero_optimization and the other members of plan::ZeroConfig, except the accumulation steps.
void read_zero_settings(Section& root, TrainingConfig& config, const ParseOptions& options);
/// Keys of DeepSpeed's root object without a setting here.
void read_other_root_keys(Section& root);

/// Rejects combinations that DeepSpeed rejects too, or that the runtime does not support.
void check_zero(Section& section, const plan::ZeroConfig& zero);

}  // namespace shardscope::config
