// The ZeRO settings of a recorded run on which the formulas depend, from its effective configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::analysis {

/// As the run itself parses them; defaults for keys that the recording lacks.
[[nodiscard]] plan::ZeroConfig zero_of(const instrumentation::RunTables& tables);
/// Whether the effective configuration of a recording contains ZeRO settings.
[[nodiscard]] bool names_zero_settings(const std::string& config_json);
/// Whether the framework keeps shards, gradients and optimizer states in host memory (FSDP2's
/// CPUOffloadPolicy): the device then holds gathered parameters and gradients that are not yet reduced.
[[nodiscard]] bool keeps_states_on_host(const std::string& config_json);
/// Ranks that train the same copy of the model as the rank of `tables`: its data-parallel group if described,
/// else all ranks. Ascending.
[[nodiscard]] std::vector<std::uint32_t> ranks_of_copy(const instrumentation::RunTables& tables);
/// Their number, at least 1.
[[nodiscard]] std::uint32_t copy_size(const instrumentation::RunTables& tables) noexcept;
/// Number of ranks that share the parameters of one copy: less than copy_size() with replicas (HSDP, MiCS).
/// 0: there are replicas, but their size is not described as one number.
[[nodiscard]] std::uint32_t shard_ranks(const instrumentation::RunTables& tables);
/// " in groups of 2" if `copy_ranks` of the `world` ranks train one copy of the model; empty if all do.
[[nodiscard]] std::string copies_text(std::uint32_t world, std::uint32_t copy_ranks);
/// Ranks of a copy, and nodes as counted by the run.
[[nodiscard]] plan::Topology topology_of(const instrumentation::RunTables& tables);

}  // namespace shardscope::analysis
