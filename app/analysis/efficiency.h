// Arithmetic of a token and what part of the hardware's peak the run reached. Definitions: metrics.md 2.12.
#pragma once

#include <optional>

#include "app/analysis/summary.h"
#include "instrumentation/run_tables.h"

namespace shardscope::analysis {

/// Efficiency at `tokens_per_s` of all ranks (nothing: unknown). Nothing without parameters.
[[nodiscard]] std::optional<Efficiency> efficiency_of(const instrumentation::RunTables& tables,
                                                      std::optional<double> tokens_per_s);

}  // namespace shardscope::analysis
