// Every key of DeepSpeed's `zero_optimization`, with DeepSpeed 0.19's defaults, as plain data. Filled by the
// JSON reader, read by the planners. Sizes are elements, not bytes, unless noted; members have the key's name
// where that name is clear. Sources: docs/zero.md P1, P16-P19, O1-O7 (deepspeed/runtime/zero/config.py,
// offload_config.py).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/compat.h"

namespace shardscope::plan {

enum class OffloadDevice : std::uint8_t { none, cpu, nvme };
[[nodiscard]] const char* to_string(OffloadDevice device) noexcept;

/// `offload_param` (O1). Only stage 3 may set it.
struct OffloadParamConfig {
  OffloadDevice device = OffloadDevice::none;
  std::string nvme_path;
  std::int64_t buffer_count = 5;
  std::int64_t buffer_size = 100'000'000;   ///< elements
  std::int64_t max_in_cpu = 1'000'000'000;  ///< elements
  bool pin_memory = true;
};

/// `offload_optimizer` (O2). Stages 1 to 3.
struct OffloadOptimizerConfig {
  OffloadDevice device = OffloadDevice::none;
  std::string nvme_path;
  std::int64_t buffer_count = 4;
  bool pin_memory = true;
  bool pipeline_read = false;
  bool pipeline_write = false;
  bool fast_init = false;
  double ratio = 1.0;  ///< stage 3: share of the sub-groups that the CPU updates (Twin-Flow, P8)
  bool super_offload = false;
  double cpuadam_cores_perc = 0.8;
};

/// `aio`, a section of its own in the JSON file (O3).
struct AioConfig {
  std::int64_t block_size = 1'048'576;  ///< bytes
  std::int64_t queue_depth = 8;
  std::int64_t intra_op_parallelism = 1;
  bool single_submit = false;
  bool overlap_events = true;
  bool use_gds = false;
};

/// `zenflow` (O5). kAuto stands for "auto".
struct ZenFlowConfig {
  static constexpr std::int64_t kAuto = -1;
  double topk_ratio = 0.1;
  std::string select_strategy = "auto";  ///< auto, step or epoch
  std::int64_t select_interval = kAuto;
  std::int64_t update_interval = kAuto;
  bool overlap_step = false;
  bool offload = false;
  double auto_ratio = 0.99;
  std::int64_t full_warm_up_rounds = 0;
  double pt_reserved_cores_perc = 0.5;
  std::int64_t steps_per_epoch = 0;  ///< filled by the runtime, not by the user
};

/// `leaf_module` (C13): modules inside which ZeRO-3 places no hooks.
struct LeafModuleConfig {
  std::vector<std::string> classes;        ///< type names
  std::vector<std::string> names;          ///< module paths
  std::vector<std::string> name_suffixes;  ///< endings of module paths
};

/// `zeropp_loco_param` (P19): error feedback of quantized gradients.
struct LocoConfig {
  double err_beta = 0.8;
  std::int64_t reset_t = 1024;
};

/// `shardscope.compat` in detail: a switch for each difference in docs/zero.md section D. default_switches()
/// returns the three presets; single keys may then be overridden.
struct CompatSwitches {
  Compat scheduler = Compat::shardscope;  ///< stage-3 fetch and release decisions
  /// D4: one all-reduce over the slices of a bucket (2S) instead of a reduce to each owner (S).
  bool multi_rank_bucket_allreduce = false;
  /// D5: one all-gather per parameter group; allgather_bucket_size is ignored.
  bool ignore_allgather_bucket_size = false;
  /// D6: the secondary tensor of hpZ serves forward gathers too while it exists.
  bool hpz_secondary_in_forward = false;
  /// D6: a gather reads the secondary tensor only where a backward issues it; a prefetch of the forward does
  /// not.
  bool hpz_prefetch_by_pass = false;
  /// D7: the first ZeRO-1 layout with max_elements_per_comm (S1).
  bool legacy_stage1_layout = false;
  /// D8: the loss scale is updated before gradients are divided by it.
  bool update_scale_before_unscale = false;
  /// L2: stage 3 skips a step with non-finite gradients in fp16 only, whatever the value of
  /// check_grad_overflow (deepspeed/runtime/zero/stage3.py, _overflow_check_and_loss_scale_update).
  bool stage3_skips_fp16_only = false;
  /// V6: a gradient that spans ranks stays whole on both until the step.
  bool keep_spanning_gradients = false;
  /// C6: limits of unfinished gathers and stage-3 reductions, beyond which the host waits; 0: no limit.
  std::int64_t max_ongoing_fetch_events = 0;
  std::int64_t max_param_reduce_events = 0;
  // Not part of any preset: they cost memory and change no decision.
  /// S9, S18, V5: buckets are buffers that gradients are copied into, and the update reads an fp32 copy of
  /// the owned gradients, which replaces the 16-bit ones; see holds_gradient_buffers().
  bool gradient_buffers = false;
  /// P13: a gather of several parameters goes to one flat tensor, from which they are copied.
  bool flat_gathers = false;
  /// P17, P18: with zero_quantized_weights the secondary copies of trained parameters are int8 too.
  bool hpz_quantized_copies = false;
  /// P2: rank 0 broadcasts the initial weights.
  bool broadcast_weights = false;
};
[[nodiscard]] CompatSwitches default_switches(Compat compat) noexcept;

struct ZeroConfig {
  std::uint32_t stage = 0;  ///< O6: 0 disabled, 1 optimizer states, 2 gradients, 3 weights

  // Stages 1 and 2 (O7). overlap_comm defaults to true for stage 3 only; see overlap().
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  std::int64_t reduce_bucket_size = 500'000'000;
  bool use_multi_rank_bucket_allreduce = true;  ///< effective only with the switch of CompatSwitches
  bool allgather_partitions = true;
  std::int64_t allgather_bucket_size = 500'000'000;
  std::optional<bool> overlap_comm;
  bool load_from_fp32_weights = true;
  bool elastic_checkpoint = false;
  bool round_robin_gradients = false;
  bool ignore_unused_parameters = true;
  bool legacy_stage1 = false;
  std::int64_t max_elements_per_comm = 500'000'000;  ///< legacy stage 1 only (S1)

  // Offload.
  OffloadParamConfig offload_param;
  OffloadOptimizerConfig offload_optimizer;
  std::optional<ZenFlowConfig> zenflow;

  // Stage 3 (P1).
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t model_persistence_threshold = std::numeric_limits<std::int64_t>::max();
  bool gather_16bit_weights_on_model_save = false;
  bool use_all_reduce_for_fetch_params = false;
  bool allgather_sequential = false;  ///< gathers one by one; forces the prefetch bucket to 1 element
  std::int64_t module_granularity_threshold = 0;
  LeafModuleConfig leaf_module;
  bool memory_efficient_linear = true;
  bool override_module_apply = true;
  bool enable_sanity_checks = false;
  bool log_trace_cache_warnings = false;

  // ZeRO++ and MiCS.
  std::int64_t hpz_partition_size = 1;
  bool quantized_weights = false;
  bool quantized_nontrainable_weights = false;
  bool quantized_gradients = false;
  std::optional<LocoConfig> loco;
  std::int64_t mics_shard_size = -1;
  bool mics_hierarchical_params_gather = false;
  bool pipeline_loading_checkpoint = false;

  // From elsewhere in the DeepSpeed file, because ZeRO's decisions depend on it.
  AioConfig aio;
  std::int64_t gradient_accumulation_steps = 1;
  std::int64_t ranks_per_node = 0;  ///< shardscope.ranks_per_node; 0: as the launcher reports
  double gradient_predivide_factor = 1.0;
  bool prescale_gradients = false;

  CompatSwitches compat;

  /// `overlap_comm`, or its default: true for stage 3, false for the others.
  [[nodiscard]] bool overlap() const noexcept { return overlap_comm.value_or(stage == 3); }
};

/// Stage 1 in its first layout (S1), selected by DeepSpeed's old key or by the compatibility switch.
[[nodiscard]] inline bool uses_legacy_layout(const ZeroConfig& zero) noexcept {
  return zero.stage == 1 && (zero.legacy_stage1 || zero.compat.legacy_stage1_layout);
}
/// Stage 2 holds a gradient that spans ranks whole on each of them until the step (V6).
[[nodiscard]] inline bool keeps_spanning_gradients(const ZeroConfig& zero) noexcept {
  return zero.stage == 2 && zero.compat.keep_spanning_gradients;
}

/// Stages 1 to 3 hold gradients as DeepSpeed does (S9, S18).
[[nodiscard]] inline bool holds_gradient_buffers(const ZeroConfig& zero) noexcept {
  return zero.stage > 0 && zero.compat.gradient_buffers;
}

}  // namespace shardscope::plan
