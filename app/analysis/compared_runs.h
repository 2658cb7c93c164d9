// What comparisons of two runs and of many have in common.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// What the figures of a side lack, in words: losses, what was not kept, problems. Empty: nothing.
[[nodiscard]] std::vector<std::string> missing_in(const std::vector<Run>& runs);

/// Measured steps of the run that has fewest: completed ones, without the first where there are more.
[[nodiscard]] std::size_t fewest_steps(const std::vector<Run>& runs);

/// The keys of a configuration with dots ("zero_optimization.stage") and their values; discarded where the
/// text is none.
[[nodiscard]] nlohmann::json flat_settings(const std::string& config_json);

}  // namespace shardscope::analysis
