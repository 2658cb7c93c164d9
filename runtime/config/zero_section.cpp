// zero_optimization and aio. Ranges follow deepspeed/runtime/zero/config.py.
#include <algorithm>

#include "runtime/config/sections.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::config {
namespace {

void read_offload_device(Section& section, plan::OffloadDevice& device) {
  section.read_enum("device", {"none", "cpu", "nvme"},
                    [&](std::size_t i) { device = static_cast<plan::OffloadDevice>(i); });
}

void read_offload_param(Section section, plan::OffloadParamConfig& offload) {
  read_offload_device(section, offload.device);
  section.read("nvme_path", offload.nvme_path);
  section.read("buffer_count", offload.buffer_count, 1, 1 << 20);
  section.read("buffer_size", offload.buffer_size, 1);
  section.read("max_in_cpu", offload.max_in_cpu);
  section.read("pin_memory", offload.pin_memory);
  if (offload.device == plan::OffloadDevice::nvme && offload.nvme_path.empty()) {
    section.fail("nvme_path", "missing: device \"nvme\" needs a folder on a local disk");
  }
  section.finish();
}

void read_offload_optimizer(Section section, plan::OffloadOptimizerConfig& offload) {
  read_offload_device(section, offload.device);
  section.read("nvme_path", offload.nvme_path);
  section.read("buffer_count", offload.buffer_count, 1, 1 << 20);
  section.read("pin_memory", offload.pin_memory);
  section.read("pipeline_read", offload.pipeline_read);
  section.read("pipeline_write", offload.pipeline_write);
  section.read("fast_init", offload.fast_init);
  if (offload.fast_init)
    section.warn("fast_init", "ignored: states begin as holes in the swap file, which read as zeros");
  section.read("ratio", offload.ratio, 0, 1);
  section.read("super_offload", offload.super_offload);
  section.read("cpuadam_cores_perc", offload.cpuadam_cores_perc, 0, 1);
  if (offload.cpuadam_cores_perc != plan::OffloadOptimizerConfig{}.cpuadam_cores_perc) {
    section.warn("cpuadam_cores_perc",
                 "ignored: the CPU optimizer has the threads of the rank's kernels (super_offload's key)");
  }
  if (offload.device == plan::OffloadDevice::nvme && offload.nvme_path.empty()) {
    section.fail("nvme_path", "missing: device \"nvme\" needs a folder on a local disk");
  }
  section.finish();
}

plan::ZenFlowConfig read_zenflow(Section section) {
  plan::ZenFlowConfig z;
  section.read("topk_ratio", z.topk_ratio, 0, 1);
  // DeepSpeed requires less than 1. With all columns chosen ZenFlow equals AdamW, which tests use.
  if (z.topk_ratio <= 0)
    section.fail("topk_ratio", "must be more than 0: without a column nothing is stepped");
  section.read_enum("select_strategy", {"auto", "step", "epoch"}, [&](std::size_t i) {
    z.select_strategy = i == 0 ? "auto" : i == 1 ? "step" : "epoch";
  });
  section.read("select_interval", z.select_interval, 1);
  section.read("update_interval", z.update_interval, 1);
  section.read("overlap_step", z.overlap_step);
  section.read("offload", z.offload);
  section.read("auto_ratio", z.auto_ratio, 0, 1);
  section.read("full_warm_up_rounds", z.full_warm_up_rounds);
  section.read("pt_reserved_cores_perc", z.pt_reserved_cores_perc, 0, 1);
  section.read("steps_per_epoch", z.steps_per_epoch);
  section.finish();
  return z;
}

void read_leaf_modules(Section section, plan::LeafModuleConfig& leaf) {
  section.read("classes", leaf.classes);
  section.read("names", leaf.names);
  section.read("name_suffixes", leaf.name_suffixes);
  section.finish();
}

plan::LocoConfig read_loco(Section section) {
  plan::LocoConfig loco;
  section.read("err_beta", loco.err_beta, 0, 1);
  section.read("reset_T", loco.reset_t, 1);
  section.finish();
  return loco;
}

/// Reads a stage-3 key under its name in the file ("stage3_x") or the short form DeepSpeed takes as well.
template <typename T>
void read_stage3(Section& section, const std::string& key, T& value) {
  const std::string prefixed = "stage3_" + key;
  if (section.find(key) != nullptr && section.find(prefixed) != nullptr) {
    section.fail(key, "is given as \"" + prefixed + "\" too; keep one of them");
  }
  section.read(key, value);
  section.read(prefixed, value);
}

/// transformers' choice for "auto": sizes from the model's width, so that a bucket holds about one layer.
void fill_auto_sizes(Section& section, plan::ZeroConfig& zero, const ParseOptions& options) {
  if (options.hidden_size <= 0) return;
  const std::int64_t square = options.hidden_size * options.hidden_size;
  if (section.is_auto("reduce_bucket_size")) zero.reduce_bucket_size = square;
  if (section.is_auto("stage3_prefetch_bucket_size")) zero.prefetch_bucket_size = square * 9 / 10;
  if (section.is_auto("stage3_param_persistence_threshold")) {
    zero.param_persistence_threshold = 10 * options.hidden_size;
  }
}

void read_deprecated(Section& section, plan::ZeroConfig& zero) {
  bool value = false;
  section.read("cpu_offload", value);
  if (value) {
    section.warn("cpu_offload", "deprecated: read as \"offload_optimizer\": {\"device\": \"cpu\"}");
    zero.offload_optimizer.device = plan::OffloadDevice::cpu;
  }
  for (const char* key : {"cpu_offload_param", "cpu_offload_params"}) {
    value = false;
    section.read(key, value);
    if (!value) continue;
    section.warn(key, "deprecated: read as \"offload_param\": {\"device\": \"cpu\"}");
    zero.offload_param.device = plan::OffloadDevice::cpu;
  }
  if (section.find("cpu_offload_use_pin_memory") != nullptr) {
    section.read("cpu_offload_use_pin_memory", zero.offload_optimizer.pin_memory);
    zero.offload_param.pin_memory = zero.offload_optimizer.pin_memory;
    section.warn("cpu_offload_use_pin_memory", "deprecated: read as pin_memory of the offload sections");
  }
  if (section.find("stage3_gather_fp16_weights_on_model_save") != nullptr) {
    section.read("stage3_gather_fp16_weights_on_model_save", zero.gather_16bit_weights_on_model_save);
    section.warn("stage3_gather_fp16_weights_on_model_save",
                 "deprecated: read as stage3_gather_16bit_weights_on_model_save");
  }
}

}  // namespace

void read_aio(Section section, plan::AioConfig& aio) {
  section.read("block_size", aio.block_size, 1);
  section.read("queue_depth", aio.queue_depth, 1, 1 << 20);
  section.read("intra_op_parallelism", aio.intra_op_parallelism, 1, 1 << 20);
  section.read("thread_count", aio.intra_op_parallelism, 1, 1 << 20);
  section.read("single_submit", aio.single_submit);
  section.read("overlap_events", aio.overlap_events);
  section.read("use_gds", aio.use_gds);
  if (aio.use_gds) section.warn("use_gds", "ignored: swap files are read and written through host memory");
  section.finish();
}

void read_zero(Section section, plan::ZeroConfig& zero, const ParseOptions& options) {
  std::int64_t stage = 0;
  section.read("stage", stage, 0, 3);
  zero.stage = static_cast<std::uint32_t>(stage);
  fill_auto_sizes(section, zero, options);

  section.read("contiguous_gradients", zero.contiguous_gradients);
  section.read("reduce_scatter", zero.reduce_scatter);
  section.read("reduce_bucket_size", zero.reduce_bucket_size, 1);
  section.read("use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce);
  section.read("allgather_partitions", zero.allgather_partitions);
  section.read("allgather_bucket_size", zero.allgather_bucket_size, 1);
  if (section.find("overlap_comm") != nullptr && !section.is_auto("overlap_comm")) {
    bool overlap = false;
    section.read("overlap_comm", overlap);
    zero.overlap_comm = overlap;
  }
  section.read("load_from_fp32_weights", zero.load_from_fp32_weights);
  section.read("elastic_checkpoint", zero.elastic_checkpoint);
  section.read("round_robin_gradients", zero.round_robin_gradients);
  section.read("ignore_unused_parameters", zero.ignore_unused_parameters);
  section.read("legacy_stage1", zero.legacy_stage1);
  section.read("max_elements_per_comm", zero.max_elements_per_comm, 1);

  if (auto offload = section.child("offload_param")) read_offload_param(*offload, zero.offload_param);
  if (auto offload = section.child("offload_optimizer"))
    read_offload_optimizer(*offload, zero.offload_optimizer);
  if (auto zenflow = section.child("zenflow")) zero.zenflow = read_zenflow(*zenflow);
  read_deprecated(section, zero);

  section.read("sub_group_size", zero.sub_group_size, 1);
  read_stage3(section, "max_live_parameters", zero.max_live_parameters);
  read_stage3(section, "max_reuse_distance", zero.max_reuse_distance);
  read_stage3(section, "prefetch_bucket_size", zero.prefetch_bucket_size);
  read_stage3(section, "param_persistence_threshold", zero.param_persistence_threshold);
  read_stage3(section, "model_persistence_threshold", zero.model_persistence_threshold);
  read_stage3(section, "gather_16bit_weights_on_model_save", zero.gather_16bit_weights_on_model_save);
  read_stage3(section, "use_all_reduce_for_fetch_params", zero.use_all_reduce_for_fetch_params);
  read_stage3(section, "allgather_sequential", zero.allgather_sequential);
  read_stage3(section, "module_granularity_threshold", zero.module_granularity_threshold);
  if (auto leaf = section.child("leaf_module")) read_leaf_modules(*leaf, zero.leaf_module);
  section.read("memory_efficient_linear", zero.memory_efficient_linear);
  section.read("override_module_apply", zero.override_module_apply);
  section.read("enable_sanity_checks", zero.enable_sanity_checks);
  section.read("log_trace_cache_warnings", zero.log_trace_cache_warnings);
  section.without_setting("save_muon_momentum_buffer_in_memory", KeyPolicy::ignored,
                          "it places a state of the Muon optimizer; the optimizer here is Adam or AdamW");

  section.read("zero_hpz_partition_size", zero.hpz_partition_size, 1, 1 << 20);
  section.read("zero_quantized_weights", zero.quantized_weights);
  section.read("zero_quantized_nontrainable_weights", zero.quantized_nontrainable_weights);
  section.read("zero_quantized_gradients", zero.quantized_gradients);
  if (auto loco = section.child("zeropp_loco_param")) zero.loco = read_loco(*loco);
  section.read("mics_shard_size", zero.mics_shard_size, -1, 1 << 20);
  section.read("mics_hierarchical_params_gather", zero.mics_hierarchical_params_gather);
  section.read("pipeline_loading_checkpoint", zero.pipeline_loading_checkpoint);
  section.finish();
  check_zero(section, zero);
}

namespace {

/// ZeRO++ and MiCS: checks combinations, and warns about keys without effect.
void check_groups(Section& section, const plan::ZeroConfig& zero) {
  if (zero.mics_shard_size > 0) {
    const std::string one_scheme = "cannot go with mics_shard_size: MiCS has groups of its own; remove one";
    if (zero.stage != 3) {
      section.fail("mics_shard_size", "needs stage 3, but stage is " + std::to_string(zero.stage));
    }
    if (zero.hpz_partition_size > 1) section.fail("zero_hpz_partition_size", one_scheme);
    if (zero.quantized_weights) section.fail("zero_quantized_weights", one_scheme);
    if (zero.quantized_nontrainable_weights) {
      section.fail("zero_quantized_nontrainable_weights", one_scheme);
    }
    if (zero.quantized_gradients) section.fail("zero_quantized_gradients", one_scheme);
    if (zero.use_all_reduce_for_fetch_params && zero.mics_hierarchical_params_gather) {
      section.fail("stage3_use_all_reduce_for_fetch_params",
                   "cannot go with mics_hierarchical_params_gather; remove one");
    }
    for (const auto& [key, device] : {std::pair("offload_param", zero.offload_param.device),
                                      std::pair("offload_optimizer", zero.offload_optimizer.device)}) {
      if (device != plan::OffloadDevice::none)
        section.fail(key, "MiCS does not offload; remove mics_shard_size");
    }
  }
  if (zero.hpz_partition_size > 1 && zero.offload_param.device == plan::OffloadDevice::nvme) {
    section.fail("zero_hpz_partition_size",
                 "cannot go with offload_param on nvme: what is read ahead would not be used; remove one");
  }
  const auto ignored = [&](bool wanted, const char* key, const std::string& why) {
    if (wanted) section.warn(key, "ignored: " + why);
  };
  const bool stage3 = zero.stage == 3;
  const std::string only3 = "it belongs to stage 3, but stage is " + std::to_string(zero.stage);
  ignored(!stage3 && zero.hpz_partition_size > 1, "zero_hpz_partition_size", only3);
  ignored(!stage3 && zero.quantized_weights, "zero_quantized_weights", only3);
  ignored(!stage3 && zero.quantized_nontrainable_weights, "zero_quantized_nontrainable_weights", only3);
  ignored(!stage3 && zero.quantized_gradients, "zero_quantized_gradients", only3);
  ignored(!stage3 && zero.use_all_reduce_for_fetch_params, "stage3_use_all_reduce_for_fetch_params", only3);
  ignored(stage3 && zero.quantized_gradients && !zero.reduce_scatter, "zero_quantized_gradients",
          "with reduce_scatter false gradients are all-reduced");
  ignored(zero.loco.has_value() && !(stage3 && zero.quantized_gradients), "zeropp_loco_param",
          "it corrects quantized gradients, and zero_quantized_gradients is off");
  ignored(zero.mics_hierarchical_params_gather && zero.mics_shard_size < 1, "mics_hierarchical_params_gather",
          "mics_shard_size is not set");
}

void check_zenflow(Section& section, const plan::ZeroConfig& zero) {
  using plan::OffloadDevice;
  const auto refuse = [&](bool wanted, const std::string& text) {
    if (wanted) section.fail("zenflow", text);
  };
  refuse(zero.offload_optimizer.device != OffloadDevice::cpu,
         "needs \"offload_optimizer\": {\"device\": \"cpu\"}: the CPU steps what is not chosen");
  refuse(zero.offload_optimizer.ratio != 1.0, "chooses what the device steps itself; leave ratio at 1");
  try {
    (void)plan::resolve_zenflow(*zero.zenflow);
  } catch (const std::invalid_argument& error) {
    section.fail("zenflow", error.what());
  }
  if (zero.zenflow->pt_reserved_cores_perc != plan::ZenFlowConfig{}.pt_reserved_cores_perc) {
    section.warn("zenflow", "pt_reserved_cores_perc is ignored: the worker is one stream of the device");
  }
}

}  // namespace

void check_zero(Section& section, const plan::ZeroConfig& zero) {
  auto refuse = [&](bool wanted, const char* key, const std::string& text) {
    if (wanted) section.fail(key, text);
  };
  using plan::OffloadDevice;
  // Rules of ZeRO itself: DeepSpeed rejects these as well.
  refuse(zero.offload_param.device != OffloadDevice::none && zero.stage != 3, "offload_param",
         "needs stage 3, but stage is " + std::to_string(zero.stage));
  refuse(zero.offload_optimizer.device != OffloadDevice::none && zero.stage == 0, "offload_optimizer",
         "needs stage 1, 2 or 3, but stage is 0");
  refuse(zero.offload_optimizer.device == OffloadDevice::nvme && zero.stage != 3, "offload_optimizer",
         "device \"nvme\" needs stage 3, but stage is " + std::to_string(zero.stage) + "; use \"cpu\"");
  refuse(zero.offload_optimizer.ratio != 1.0 && zero.stage != 3, "offload_optimizer",
         "ratio other than 1 needs stage 3, but stage is " + std::to_string(zero.stage));
  // Not supported: it would change memory and results, so it is rejected, not ignored.
  refuse(
      zero.offload_optimizer.super_offload, "offload_optimizer",
      "super_offload is not supported: it steps speculatively and rolls back, for a CPU and GPU on one chip; "
      "remove it, \"ratio\" divides the update between device and CPU");
  if (zero.zenflow) check_zenflow(section, zero);
  check_groups(section, zero);
  // Accepted, because the result is the same, with a warning, because the user may expect an effect.
  auto ignored = [&](bool wanted, const char* key, const std::string& why) {
    if (wanted) section.warn(key, "ignored: " + why);
  };
  ignored(!zero.allgather_partitions, "allgather_partitions",
          "DeepSpeed 0.19 reads it nowhere and all-gathers parameters whatever it says, and so does this "
          "runtime");
  ignored(zero.elastic_checkpoint && zero.stage == 3, "elastic_checkpoint",
          "DeepSpeed no longer supports it in stage 3; here any number of ranks and any stage reads a "
          "checkpoint");
  ignored(zero.round_robin_gradients && (zero.stage == 0 || zero.stage == 3), "round_robin_gradients",
          "it orders the partitions of stages 1 and 2, but stage is " + std::to_string(zero.stage));
  ignored(zero.legacy_stage1 && zero.stage != 1, "legacy_stage1",
          "it is a layout of stage 1, but stage is " + std::to_string(zero.stage));
  ignored(zero.log_trace_cache_warnings && zero.stage != 3, "log_trace_cache_warnings",
          "it concerns stage 3, but stage is " + std::to_string(zero.stage));
  ignored(!zero.load_from_fp32_weights, "load_from_fp32_weights",
          "--resume always reads the fp32 master weights");
  ignored(!zero.memory_efficient_linear && zero.stage != 3, "memory_efficient_linear",
          "it concerns stage 3, but stage is " + std::to_string(zero.stage));
  ignored(!zero.override_module_apply, "override_module_apply", "it concerns torch modules");
  ignored(zero.pipeline_loading_checkpoint, "pipeline_loading_checkpoint", "each rank reads its own shard");
  ignored(zero.gather_16bit_weights_on_model_save, "stage3_gather_16bit_weights_on_model_save",
          "--save always writes whole weights");
}

}  // namespace shardscope::config
