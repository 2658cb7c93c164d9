// The settings of a configuration that every rank of a run must have alike, as the ranks compare them before
// the first step.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/plan/settings_agreement.h"

namespace shardscope::config {

/// Keys that a rank may have for itself, because they change no weight, no collective and no decision: paths,
/// links, how a disk is read, what is printed and recorded. A section's name stands for all of its keys.
[[nodiscard]] std::span<const std::string_view> keys_of_one_rank() noexcept;

/// Every other key of effective_json(), defaults included, values as JSON: what the run does, not how the
/// file says it.
[[nodiscard]] std::vector<plan::RankSetting> compared_settings(const TrainingConfig& config);

}  // namespace shardscope::config
