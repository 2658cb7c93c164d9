#include "app/analysis/zero_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "runtime/plan/compare_schedulers.h"

namespace shardscope::analysis {
namespace {

using nlohmann::json;

template <typename T>
void read(const json& section, const char* key, T& value) {
  const auto found = section.find(key);
  if (found == section.end()) return;
  if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) value = found->get<bool>();
  } else {
    if (found->is_number_integer()) value = found->get<T>();
  }
}

template <typename Offload>
void read_offload(const json& section, const char* key, Offload& offload) {
  const auto found = section.find(key);
  if (found == section.end() || !found->is_object()) return;
  if (const auto device = found->find("device"); device != found->end()) {
    if (*device == "cpu") offload.device = plan::OffloadDevice::cpu;
    if (*device == "nvme") offload.device = plan::OffloadDevice::nvme;
  }
  read(*found, "pin_memory", offload.pin_memory);
  if constexpr (requires { offload.ratio; }) {
    const auto ratio = found->find("ratio");
    if (ratio != found->end() && ratio->is_number()) offload.ratio = ratio->template get<double>();
  }
}

}  // namespace

plan::ZeroConfig zero_of(const instrumentation::RunTables& tables) {
  plan::ZeroConfig zero;
  zero.stage = static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3));
  const json config = parse_foreign(tables.config_json);
  if (!config.is_object()) return zero;
  if (const auto section = config.find("zero_optimization");
      section != config.end() && section->is_object()) {
    read_offload(*section, "offload_param", zero.offload_param);
    read_offload(*section, "offload_optimizer", zero.offload_optimizer);
    if (const auto zenflow = section->find("zenflow"); zenflow != section->end() && zenflow->is_object()) {
      zero.zenflow.emplace();
      read(*zenflow, "offload", zero.zenflow->offload);
      read(*zenflow, "overlap_step", zero.zenflow->overlap_step);
    }
    read(*section, "reduce_scatter", zero.reduce_scatter);
    read(*section, "use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce);
    read(*section, "legacy_stage1", zero.legacy_stage1);
    read(*section, "max_elements_per_comm", zero.max_elements_per_comm);
    read(*section, "stage3_prefetch_bucket_size", zero.prefetch_bucket_size);
    read(*section, "stage3_max_live_parameters", zero.max_live_parameters);
    read(*section, "stage3_max_reuse_distance", zero.max_reuse_distance);
    read(*section, "stage3_param_persistence_threshold", zero.param_persistence_threshold);
    read(*section, "stage3_model_persistence_threshold", zero.model_persistence_threshold);
    read(*section, "stage3_allgather_sequential", zero.allgather_sequential);
    read(*section, "stage3_use_all_reduce_for_fetch_params", zero.use_all_reduce_for_fetch_params);
    read(*section, "zero_hpz_partition_size", zero.hpz_partition_size);
    read(*section, "zero_quantized_weights", zero.quantized_weights);
    read(*section, "zero_quantized_gradients", zero.quantized_gradients);
    read(*section, "mics_shard_size", zero.mics_shard_size);
    read(*section, "mics_hierarchical_params_gather", zero.mics_hierarchical_params_gather);
  }
  if (const auto ours = config.find("shardscope"); ours != config.end() && ours->is_object()) {
    if (const auto compat = ours->find("compat"); compat != ours->end() && compat->is_object()) {
      read(*compat, "hpz_secondary_in_forward", zero.compat.hpz_secondary_in_forward);
      read(*compat, "legacy_stage1_layout", zero.compat.legacy_stage1_layout);
      read(*compat, "multi_rank_bucket_allreduce", zero.compat.multi_rank_bucket_allreduce);
      read(*compat, "max_param_reduce_events", zero.compat.max_param_reduce_events);
      for (const plan::Compat which :
           {plan::Compat::shardscope, plan::Compat::deepspeed, plan::Compat::notes}) {
        if (compat->value("scheduler", json()) == plan::to_string(which)) zero.compat.scheduler = which;
      }
    }
  }
  return zero;
}

plan::Topology topology_of(const instrumentation::RunTables& tables) noexcept {
  const std::uint32_t world = std::max<std::uint32_t>(tables.world, 1);
  const std::uint32_t node = std::clamp<std::uint32_t>(tables.local_world, 1, world);
  return {world, world % node == 0 ? node : world};
}

}  // namespace shardscope::analysis
