// The settings of a configuration that must be equal on all ranks; the ranks compare them before the first
// step.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/plan/settings_agreement.h"

namespace shardscope::config {

/// Keys that may differ by rank, because they change no weight, no collective and no decision: paths, links,
/// disk access, output and recording. A section's name includes all of its keys.
[[nodiscard]] std::span<const std::string_view> keys_of_one_rank() noexcept;

/// Every other key of effective_json(), defaults included, values as JSON: the effective settings, not the
/// file's text.
[[nodiscard]] std::vector<plan::RankSetting> compared_settings(const TrainingConfig& config);

}  // namespace shardscope::config
