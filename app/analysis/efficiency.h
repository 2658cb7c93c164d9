// Floating-point operations per token, and the fraction of the hardware's peak reached. metrics.md 2.12.
#pragma once

#include <optional>
#include <string>

#include "app/analysis/summary.h"
#include "instrumentation/run_tables.h"

namespace shardscope::analysis {

/// Efficiency at `tokens_per_s` over all ranks (nullopt: unknown). nullopt without parameters.
[[nodiscard]] std::optional<Efficiency> efficiency_of(const instrumentation::RunTables& tables,
                                                      std::optional<double> tokens_per_s);

/// "106 TFLOP/s a rank, 34.1 % of 312 TFLOP/s (MFU)"; empty if the rate is unknown.
[[nodiscard]] std::string rate_text(const Efficiency& efficiency);
/// "2810 W, 12.3 tokens per joule (tokens/s / power of all GPUs)".
[[nodiscard]] std::string energy_text(const EnergyUse& energy);
/// "a token takes 7.64e+08 FLOP: 6 x ...".
[[nodiscard]] std::string flop_text(const Efficiency& efficiency);

}  // namespace shardscope::analysis
