// Shared by comparisons of two runs and of many.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// Why the figures of a side are incomplete: losses, deleted events, problems. Empty if they are complete.
[[nodiscard]] std::vector<std::string> missing_in(const std::vector<Run>& runs);

/// Measured steps of the run with the fewest: completed steps, without the first if there are several.
[[nodiscard]] std::size_t fewest_steps(const std::vector<Run>& runs);

/// A configuration flattened to dotted keys ("zero_optimization.stage") and values; discarded if the text is
/// not valid.
[[nodiscard]] nlohmann::json flat_settings(const std::string& config_json);

}  // namespace shardscope::analysis
