#include "runtime/engine/run_tables.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_config.h"

namespace shardscope::engine {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  // One byte less: a truncated name may lack the terminating zero.
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "processor";
  for (std::string line; std::getline(info, line);) {
    // The first processor's: usually all of a machine are the same.
    if (line.rfind("model name", 0) != 0) continue;
    if (const std::size_t colon = line.find(": "); colon != std::string::npos) model = line.substr(colon + 2);
    break;
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " hardware threads";
}

}  // namespace

instrumentation::RunTables make_run_tables(const plan::ModelPlan& model, const config::TrainingConfig& config,
                                           const RunIdentity& identity) {
  const kernels::DType type = config.storage_type();
  const auto element_bytes = static_cast<std::uint32_t>(kernels::size_of(type));
  instrumentation::RunTables tables;
  tables.run_id = identity.run_id;
  tables.model = model.spec.name;
  tables.device = identity.device;
  tables.hardware = processor();
  tables.versions = identity.versions;
  // With all defaults filled in, so that a viewer need not know them.
  tables.config_json = config::effective_json(config);
  tables.rank = identity.rank;
  tables.world = identity.world;
  tables.local_world = identity.local_world;
  tables.stage = static_cast<std::int32_t>(config.zero.stage);
  tables.pid = static_cast<std::int32_t>(getpid());
  tables.elems = model.elems;
  tables.param_bytes = element_bytes;
  tables.grad_bytes = static_cast<std::uint32_t>(kernels::size_of(config.grad_accum_type));
  // fp32 parameters are their own master weights.
  tables.master_bytes = type == kernels::DType::f32 ? 0 : 4;
  tables.link_gbps = config.shardscope.link.gbps;
  tables.link_latency_us = config.shardscope.link.latency_us;
  tables.host = host_name();

  // Ordered by id, as used in events.
  for (const plan::ModulePlan& module : model.modules) {
    instrumentation::ModuleInfo info;
    info.id = plan::raw(module.id);
    info.parent = plan::raw(module.parent);
    info.path = module.path;
    info.type = module.type;
    for (const plan::ParamId param : module.params) info.params.push_back(plan::raw(param));
    info.hooks = module.hooks;
    tables.modules.push_back(std::move(info));
  }

  const plan::DataParallelGroups& groups = config.shardscope.data_parallel_groups;
  // Two lists: the ranks that share one copy of the model's states, and those with other parts of the same
  // model (P20).
  if (!groups.empty()) {
    const plan::DataParallelPlace place = plan::data_parallel_place(groups, identity.world, identity.rank);
    tables.groups.push_back(
        {kDataParallelGroup, "data parallel", instrumentation::GroupPurpose::data, place.members});
    tables.groups.push_back(
        {kModelParallelPeers, "model-parallel peers", instrumentation::GroupPurpose::other, place.peers});
  }
  // Ranks that share the states: all of the run, or those of one data-parallel group.
  const std::uint32_t copy = plan::data_parallel_world(groups, identity.world);
  // The engine's planners with the engine's alignment, so that the tables agree with it.
  const plan::Ownership ownership(model, config.zero, copy,
                                  plan::kShardAlignmentBytes / static_cast<std::int64_t>(element_bytes));
  const plan::FetchScheduler scheduler(model, copy, plan::make_scheduler_config(config.zero));
  std::vector<std::uint32_t> owners(
      identity.world);  // by world rank: its rank within its data-parallel group
  for (std::uint32_t rank = 0; rank < identity.world; ++rank)
    owners[rank] = plan::data_parallel_place(groups, identity.world, rank).rank;
  for (const plan::ParamPlan& param : model.params) {
    instrumentation::ParamInfo info;
    info.id = plan::raw(param.id);
    info.name = param.name;
    info.dtype = config::name_of(type);
    info.shape = param.shape;
    info.elems = param.elems;
    info.frozen = !param.trainable;
    for (const plan::ModuleId module : param.modules) info.modules.push_back(plan::raw(module));
    // Below stage 3 parameters are whole on every rank: no shard, no persistence.
    if (ownership.stage() == 3) {
      const plan::ParamPartition& partition = ownership.shards().partitions[plan::raw(param.id)];
      info.shard_elems = partition.shard_elems;
      info.padding_elems = partition.padding_elems;
      // From the scheduler, which also decides releases, not from the threshold.
      info.persistent = scheduler.persistent(param.id);
    }
    tables.params.push_back(std::move(info));
    // Of every rank, not only this one: a viewer shows the whole partition from the tables of any rank.
    for (std::uint32_t rank = 0; rank < identity.world; ++rank) {
      for (const plan::OwnedSlice& slice : ownership.slices(param.id, owners[rank])) {
        // By world rank: with data-parallel groups ranks of several groups own the same slice.
        tables.slices.push_back({plan::raw(param.id), rank, slice.param_offset, slice.owned_offset,
                                 slice.elems, slice.padding_elems});
      }
    }
  }
  // With the one default group there is no list.
  if (config.group_rules().empty()) return tables;
  for (const config::ParamGroup& group : config.param_groups) {
    const config::OptimizerConfig& o = group.optimizer;
    tables.param_groups.push_back({group.rule.name, o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, {}});
  }
  // Frozen parameters are in no group of the optimizer.
  for (const plan::ParamPlan& param : model.params) {
    if (param.trainable) tables.param_groups.at(param.group).params.push_back(plan::raw(param.id));
  }
  return tables;
}

}  // namespace shardscope::engine
