// The configuration written back with every default visible, so that a recording contains the effective
// settings and two runs can be compared key by key.
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/emulated_link.h"
#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

using Json = nlohmann::ordered_json;
using plan::LrScheduleType;

const char* name_of(plan::Compat compat) noexcept {
  switch (compat) {
    case plan::Compat::shardscope:
      return "shardscope";
    case plan::Compat::deepspeed:
      return "deepspeed";
    case plan::Compat::notes:
      return "notes";
  }
  return "?";
}

Json optimizer_json(const OptimizerConfig& o) {
  Json params = {{"lr", o.lr},
                 {"betas", {o.beta1, o.beta2}},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"adam_w_mode", o.decoupled}};
  return {{"type", o.type}, {"params", std::move(params)}};
}

/// A number, or a list where parameter groups have different ones.
Json of_groups(const TrainingConfig& config, double plan::LrSchedule::*member) {
  Json list = Json::array();
  bool alike = true;
  for (const ParamGroup& group : config.param_groups) {
    list.push_back(group.scheduler.*member);
    alike = alike && group.scheduler.*member == config.scheduler.*member;
  }
  return alike ? Json(config.scheduler.*member) : list;
}

Json scheduler_json(const TrainingConfig& config) {
  const plan::LrSchedule& s = config.scheduler;
  const auto each = [&config](double plan::LrSchedule::*member) { return of_groups(config, member); };
  Json params = Json::object();
  const char* const shape = s.warmup_shape == plan::WarmupShape::log ? "log" : "linear";
  switch (s.type) {
    case LrScheduleType::constant:
      break;
    case LrScheduleType::warmup_decay:
      params["total_num_steps"] = s.total_num_steps;
      [[fallthrough]];
    case LrScheduleType::warmup:
      params["warmup_min_lr"] = each(&plan::LrSchedule::warmup_min_lr);
      params["warmup_max_lr"] = each(&plan::LrSchedule::warmup_max_lr);
      params["warmup_num_steps"] = s.warmup_num_steps;
      params["warmup_type"] = shape;
      break;
    case LrScheduleType::warmup_cosine:
      params["total_num_steps"] = s.total_num_steps;
      params["warmup_min_ratio"] = s.warmup_min_ratio;
      params["cos_min_ratio"] = s.cos_min_ratio;
      params["warmup_num_steps"] = s.warmup_num_steps;
      params["warmup_type"] = shape;
      break;
    case LrScheduleType::lr_range_test:
      params["lr_range_test_min_lr"] = each(&plan::LrSchedule::range_min_lr);
      params["lr_range_test_step_size"] = s.range_step_size;
      params["lr_range_test_step_rate"] = s.range_step_rate;
      params["lr_range_test_staircase"] = s.range_staircase;
      break;
    case LrScheduleType::one_cycle:
      params["cycle_min_lr"] = each(&plan::LrSchedule::cycle_min_lr);
      params["cycle_max_lr"] = each(&plan::LrSchedule::cycle_max_lr);
      params["cycle_first_step_size"] = s.cycle_first_step_size;
      params["cycle_second_step_size"] = s.cycle_second_step_size.value_or(s.cycle_first_step_size);
      params["cycle_first_stair_count"] = s.cycle_first_stair_count;
      params["cycle_second_stair_count"] = s.cycle_second_stair_count.value_or(s.cycle_first_stair_count);
      params["decay_lr_rate"] = s.decay_lr_rate;
      params["decay_step_size"] = s.decay_step_size;
      params["cycle_momentum"] = s.cycle_momentum;
      params["cycle_min_mom"] = each(&plan::LrSchedule::cycle_min_mom);
      params["cycle_max_mom"] = each(&plan::LrSchedule::cycle_max_mom);
      params["decay_mom_rate"] = s.decay_mom_rate;
      break;
  }
  return {{"type", schedule_name(s.type)}, {"params", std::move(params)}};
}

Json fp16_json(const Fp16Config& f) {
  return {{"enabled", f.enabled},
          {"loss_scale", f.loss_scale},
          {"initial_scale_power", f.initial_scale_power},
          {"loss_scale_window", f.loss_scale_window},
          {"hysteresis", f.hysteresis},
          {"consecutive_hysteresis", f.consecutive_hysteresis},
          {"min_loss_scale", f.min_loss_scale}};
}

Json zero_json(const plan::ZeroConfig& z) {
  Json json = {{"stage", z.stage},
               {"contiguous_gradients", z.contiguous_gradients},
               {"reduce_scatter", z.reduce_scatter},
               {"reduce_bucket_size", z.reduce_bucket_size},
               {"allgather_partitions", z.allgather_partitions},
               {"allgather_bucket_size", z.allgather_bucket_size},
               {"overlap_comm", z.overlap()},
               {"load_from_fp32_weights", z.load_from_fp32_weights},
               {"elastic_checkpoint", z.elastic_checkpoint},
               {"round_robin_gradients", z.round_robin_gradients},
               {"ignore_unused_parameters", z.ignore_unused_parameters},
               {"legacy_stage1", z.legacy_stage1},
               {"max_elements_per_comm", z.max_elements_per_comm}};
  // Without the switch of compat the default, true, has no effect: writing it would mislead.
  if (!z.use_multi_rank_bucket_allreduce || z.compat.multi_rank_bucket_allreduce)
    json["use_multi_rank_bucket_allreduce"] = z.use_multi_rank_bucket_allreduce;
  const auto& p = z.offload_param;
  json["offload_param"] = {{"device", plan::to_string(p.device)}, {"nvme_path", p.nvme_path},
                           {"buffer_count", p.buffer_count},      {"buffer_size", p.buffer_size},
                           {"max_in_cpu", p.max_in_cpu},          {"pin_memory", p.pin_memory}};
  const auto& o = z.offload_optimizer;
  json["offload_optimizer"] = {{"device", plan::to_string(o.device)},
                               {"nvme_path", o.nvme_path},
                               {"buffer_count", o.buffer_count},
                               {"pin_memory", o.pin_memory},
                               {"pipeline_read", o.pipeline_read},
                               {"pipeline_write", o.pipeline_write},
                               {"fast_init", o.fast_init},
                               {"ratio", o.ratio},
                               {"super_offload", o.super_offload},
                               {"cpuadam_cores_perc", o.cpuadam_cores_perc}};
  if (z.zenflow) {
    const plan::ZenFlowConfig& f = *z.zenflow;
    const auto interval = [](std::int64_t steps) {
      return steps == plan::ZenFlowConfig::kAuto ? Json("auto") : Json(steps);
    };
    json["zenflow"] = {{"topk_ratio", f.topk_ratio},
                       {"select_strategy", f.select_strategy},
                       {"select_interval", interval(f.select_interval)},
                       {"update_interval", interval(f.update_interval)},
                       {"overlap_step", f.overlap_step},
                       {"offload", f.offload},
                       {"auto_ratio", f.auto_ratio},
                       {"full_warm_up_rounds", f.full_warm_up_rounds},
                       {"pt_reserved_cores_perc", f.pt_reserved_cores_perc},
                       {"steps_per_epoch", f.steps_per_epoch}};
  }
  json["sub_group_size"] = z.sub_group_size;
  json["stage3_max_live_parameters"] = z.max_live_parameters;
  json["stage3_max_reuse_distance"] = z.max_reuse_distance;
  json["stage3_prefetch_bucket_size"] = z.prefetch_bucket_size;
  json["stage3_param_persistence_threshold"] = z.param_persistence_threshold;
  json["stage3_model_persistence_threshold"] = z.model_persistence_threshold;
  json["stage3_gather_16bit_weights_on_model_save"] = z.gather_16bit_weights_on_model_save;
  json["stage3_use_all_reduce_for_fetch_params"] = z.use_all_reduce_for_fetch_params;
  json["stage3_allgather_sequential"] = z.allgather_sequential;
  json["stage3_module_granularity_threshold"] = z.module_granularity_threshold;
  json["leaf_module"] = {{"classes", z.leaf_module.classes},
                         {"names", z.leaf_module.names},
                         {"name_suffixes", z.leaf_module.name_suffixes}};
  json["memory_efficient_linear"] = z.memory_efficient_linear;
  json["override_module_apply"] = z.override_module_apply;
  json["enable_sanity_checks"] = z.enable_sanity_checks;
  json["log_trace_cache_warnings"] = z.log_trace_cache_warnings;
  json["zero_hpz_partition_size"] = z.hpz_partition_size;
  json["zero_quantized_weights"] = z.quantized_weights;
  json["zero_quantized_nontrainable_weights"] = z.quantized_nontrainable_weights;
  json["zero_quantized_gradients"] = z.quantized_gradients;
  if (z.loco) json["zeropp_loco_param"] = {{"err_beta", z.loco->err_beta}, {"reset_T", z.loco->reset_t}};
  json["mics_shard_size"] = z.mics_shard_size;
  json["mics_hierarchical_params_gather"] = z.mics_hierarchical_params_gather;
  json["pipeline_loading_checkpoint"] = z.pipeline_loading_checkpoint;
  return json;
}

Json link_json(const base::EmulatedLink& link) {
  Json json{{"gbps", link.gbps}, {"latency_us", link.latency_us}};
  if (link.intra_gbps >= 0) json["intra_gbps"] = link.intra_gbps;
  if (link.intra_latency_us >= 0) json["intra_latency_us"] = link.intra_latency_us;
  return json;
}

Json param_groups_json(const TrainingConfig& config) {
  Json groups = Json::array();
  for (const ParamGroup& group : config.param_groups) {
    Json json{{"name", group.rule.name}};
    if (!group.rule.params.empty()) json["params"] = group.rule.params;
    if (group.rule.min_dims) json["min_dims"] = *group.rule.min_dims;
    if (group.rule.max_dims) json["max_dims"] = *group.rule.max_dims;
    json["lr"] = group.optimizer.lr;
    json["betas"] = {group.optimizer.beta1, group.optimizer.beta2};
    json["eps"] = group.optimizer.eps;
    json["weight_decay"] = group.optimizer.weight_decay;
    groups.push_back(std::move(json));
  }
  return groups;
}

Json micro_batches_json(const plan::MicroBatches& m) {
  static constexpr std::array kPackings{"fixed", "padded", "packed"};
  Json shapes = Json::array();
  for (const plan::MicroBatchShape& one : m.shapes) shapes.push_back({one.samples, one.tokens});
  return {{"packing", kPackings.at(static_cast<std::size_t>(m.packing))},
          {"separator", m.separator_token < 0 ? Json(m.separator) : Json(m.separator_token)},
          {"pad_to_multiple_of", m.pad_to_multiple_of},
          {"shapes", std::move(shapes)}};
}

Json shardscope_json(const TrainingConfig& config) {
  const ShardscopeConfig& s = config.shardscope;
  const plan::CompatSwitches& c = config.zero.compat;
  Json json{{"compat",
             {{"preset", name_of(s.compat)},
              {"scheduler", name_of(c.scheduler)},
              {"multi_rank_bucket_allreduce", c.multi_rank_bucket_allreduce},
              {"ignore_allgather_bucket_size", c.ignore_allgather_bucket_size},
              {"hpz_secondary_in_forward", c.hpz_secondary_in_forward},
              {"hpz_prefetch_by_pass", c.hpz_prefetch_by_pass},
              {"legacy_stage1_layout", c.legacy_stage1_layout},
              {"update_scale_before_unscale", c.update_scale_before_unscale},
              {"stage3_skips_fp16_only", c.stage3_skips_fp16_only},
              {"keep_spanning_gradients", c.keep_spanning_gradients},
              {"max_ongoing_fetch_events", c.max_ongoing_fetch_events},
              {"max_param_reduce_events", c.max_param_reduce_events},
              {"gradient_buffers", c.gradient_buffers},
              {"flat_gathers", c.flat_gathers},
              {"hpz_quantized_copies", c.hpz_quantized_copies},
              {"broadcast_weights", c.broadcast_weights}}},
            {"emulated_link", link_json(s.link)},
            {"ranks_per_node", config.zero.ranks_per_node},
            {"detail", name_of(s.detail)},
            {"ring_events", s.ring_events},
            {"queue_bytes", s.queue_bytes},
            {"key", s.key},
            {"linger_s", s.linger_s},
            {"activation_checkpointing", s.activation_checkpointing},
            {"checkpoint_early_stop", s.checkpoint_early_stop},
            {"micro_batches", micro_batches_json(s.micro_batches)},
            {"data_prefetch", s.data_prefetch},
            {"eval_interval", s.eval_interval},
            {"eval_batches", s.eval_batches},
            {"eval_fraction", s.eval_fraction},
            {"zero_init", s.zero_init}};
  json["data_parallel_groups"] = s.data_parallel_groups;
  if (!config.group_rules().empty()) json["param_groups"] = param_groups_json(config);
  return json;
}

}  // namespace

const char* name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
    case LogLevel::critical:
      return "critical";
  }
  return "?";
}

const char* name_of(kernels::DType type) noexcept {
  switch (type) {
    case kernels::DType::f32:
      return "fp32";
    case kernels::DType::bf16:
      return "bf16";
    case kernels::DType::f16:
      return "fp16";
    case kernels::DType::i8:
      return "int8";
  }
  return "?";
}

std::string effective_json(const TrainingConfig& config) {
  const plan::AioConfig& a = config.zero.aio;
  Json json = {{"train_batch_size", config.batch.train_batch_size},
               {"train_micro_batch_size_per_gpu", config.batch.micro_batch_size},
               {"gradient_accumulation_steps", config.batch.accumulation_steps},
               {"steps_per_print", config.steps_per_print},
               {"wall_clock_breakdown", config.log.wall_clock_breakdown},
               {"memory_breakdown", config.log.memory_breakdown},
               {"dump_state", config.log.dump_state},
               {"log_level", name_of(config.log.level)},
               {"gradient_clipping", config.gradient_clipping},
               {"prescale_gradients", config.zero.prescale_gradients},
               {"gradient_predivide_factor", config.zero.gradient_predivide_factor},
               {"optimizer", optimizer_json(config.optimizer)}};
  if (config.scheduler.type != LrScheduleType::constant) json["scheduler"] = scheduler_json(config);
  json["fp16"] = fp16_json(config.fp16);
  json["bf16"] = {{"enabled", config.bf16.enabled}, {"check_grad_overflow", config.bf16.check_grad_overflow}};
  json["data_types"] = {{"grad_accum_dtype", name_of(config.grad_accum_type)}};
  json["communication_data_type"] = name_of(config.communication_type);
  json["zero_optimization"] = zero_json(config.zero);
  json["aio"] = {{"block_size", a.block_size},
                 {"queue_depth", a.queue_depth},
                 {"intra_op_parallelism", a.intra_op_parallelism},
                 {"single_submit", a.single_submit},
                 {"overlap_events", a.overlap_events},
                 {"use_gds", a.use_gds}};
  json["shardscope"] = shardscope_json(config);
  return json.dump(2);
}

}  // namespace shardscope::config
