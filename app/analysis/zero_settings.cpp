#include "app/analysis/zero_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "app/analysis/foreign_json.h"
#include "runtime/config/config.h"
#include "runtime/plan/data_parallel.h"

namespace shardscope::analysis {

plan::ZeroConfig zero_of(const instrumentation::RunTables& tables) {
  plan::ZeroConfig zero = config::recorded_zero(tables.config_json);
  zero.stage = static_cast<std::uint32_t>(std::clamp(tables.stage, 0, 3));
  return zero;
}

bool names_zero_settings(const std::string& config_json) {
  const auto config = parse_foreign(config_json);
  return config.is_object() && config.contains("zero_optimization") &&
         config["zero_optimization"].is_object();
}

bool keeps_states_on_host(const std::string& config_json) {
  const auto config = parse_foreign(config_json);
  if (!config.is_object() || !config.contains("fully_shard")) return false;
  const auto& settings = config["fully_shard"];
  return settings.is_object() && settings.contains("offload_policy") &&
         settings["offload_policy"] == "CPUOffloadPolicy";
}

namespace {

const instrumentation::GroupInfo* data_parallel_group(const instrumentation::RunTables& tables) noexcept {
  for (const instrumentation::GroupInfo& group : tables.groups) {
    if (group.purpose == instrumentation::GroupPurpose::data && !group.ranks.empty()) return &group;
  }
  return nullptr;
}

}  // namespace

std::vector<std::uint32_t> ranks_of_copy(const instrumentation::RunTables& tables) {
  if (const auto* group = data_parallel_group(tables)) return group->ranks;
  std::vector<std::uint32_t> all(std::max<std::uint32_t>(tables.world, 1));
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::uint32_t copy_size(const instrumentation::RunTables& tables) noexcept {
  if (const auto* group = data_parallel_group(tables)) return static_cast<std::uint32_t>(group->ranks.size());
  return std::max<std::uint32_t>(tables.world, 1);
}

std::uint32_t shard_ranks(const instrumentation::RunTables& tables) {
  bool replicas = false;
  std::set<std::size_t> sizes;
  for (const instrumentation::GroupInfo& group : tables.groups) {
    replicas =
        replicas || (group.purpose == instrumentation::GroupPurpose::replica && group.ranks.size() > 1);
    if (group.purpose == instrumentation::GroupPurpose::shard && !group.ranks.empty())
      sizes.insert(group.ranks.size());
  }
  if (replicas) return sizes.size() == 1 ? static_cast<std::uint32_t>(*sizes.begin()) : 0;
  const std::int64_t mics = zero_of(tables).mics_shard_size;
  return mics > 0 ? static_cast<std::uint32_t>(mics) : copy_size(tables);
}

std::string copies_text(std::uint32_t world, std::uint32_t copy_ranks) {
  return copy_ranks == 0 || copy_ranks >= world ? ""
                                                : " in data-parallel groups of " + std::to_string(copy_ranks);
}

plan::Topology topology_of(const instrumentation::RunTables& tables) {
  const std::uint32_t world = std::max<std::uint32_t>(tables.world, 1);
  const std::uint32_t node = std::clamp<std::uint32_t>(tables.local_world, 1, world);
  return plan::topology_of_group(ranks_of_copy(tables), world % node == 0 ? node : world);
}

}  // namespace shardscope::analysis
