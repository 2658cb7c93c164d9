// The ZeRO settings of a recorded run that its expressions depend on, read from its effective configuration.
#pragma once

#include <string>

#include "instrumentation/emitter.h"
#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::analysis {

/// As the run itself reads them; defaults for what a recording does not say.
[[nodiscard]] plan::ZeroConfig zero_of(const instrumentation::RunTables& tables);
/// Whether the effective configuration of a recording has ZeRO settings at all.
[[nodiscard]] bool names_zero_settings(const std::string& config_json);
/// Ranks and nodes, as the run counted them.
[[nodiscard]] plan::Topology topology_of(const instrumentation::RunTables& tables) noexcept;

}  // namespace shardscope::analysis
