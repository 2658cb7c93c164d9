// The settings of FSDP2 that `what-if` can change. The script makes them by calls; their keys are those of
// python/shardscope/fsdp2_settings.py where it records them.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/attached/group_actions.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis::attached {

[[nodiscard]] const std::vector<std::string>& group_keys();
/// Why `key`, which is not one of group_keys(), cannot be changed; as a sentence without a full stop.
[[nodiscard]] std::string why_no_group_setting(const std::string& key);
/// Throws std::invalid_argument for a value that FSDP2 does not have.
void change_group_setting(const Change& change, GroupSettings& settings);

}  // namespace shardscope::analysis::attached
