// The ZeRO settings of a recorded run that its expressions depend on, read from its effective configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::analysis {

/// As the run itself reads them; defaults for what a recording does not say.
[[nodiscard]] plan::ZeroConfig zero_of(const instrumentation::RunTables& tables);
/// Whether the effective configuration of a recording has ZeRO settings at all.
[[nodiscard]] bool names_zero_settings(const std::string& config_json);
/// Whether the framework keeps the shards of all parameters, their gradients and optimizer states in host
/// memory (FSDP2's CPUOffloadPolicy): then the device has what is gathered and what is not reduced yet.
[[nodiscard]] bool keeps_states_on_host(const std::string& config_json);
/// Ranks that train one copy of the model with the rank of `tables`: its data-parallel group where it has
/// described one, or all of the run. Ascending.
[[nodiscard]] std::vector<std::uint32_t> ranks_of_copy(const instrumentation::RunTables& tables);
/// How many: at least 1.
[[nodiscard]] std::uint32_t copy_size(const instrumentation::RunTables& tables) noexcept;
/// Over how many ranks the parameters of one copy of the model are divided: fewer than copy_size() with
/// replicas (HSDP, MiCS). 0: there are replicas, and their size was not described, or not as one number.
[[nodiscard]] std::uint32_t shard_ranks(const instrumentation::RunTables& tables);
/// " in groups of 2", where `copy_ranks` of the `world` ranks train one copy of the model; empty: all do.
[[nodiscard]] std::string copies_text(std::uint32_t world, std::uint32_t copy_ranks);
/// Ranks of a copy and nodes, as the run counted them.
[[nodiscard]] plan::Topology topology_of(const instrumentation::RunTables& tables);

}  // namespace shardscope::analysis
