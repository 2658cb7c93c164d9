// The settings of DistributedDataParallel that `what-if` can change; their keys are those of
// python/shardscope/ddp.py where it records them.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/attached/ddp_buckets.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis::attached {

[[nodiscard]] const std::vector<std::string>& ddp_keys();
/// Why `key`, which is not one of ddp_keys(), cannot be changed; as a sentence without a full stop.
[[nodiscard]] std::string why_no_ddp_setting(const std::string& key);
/// Throws std::invalid_argument for a value that DistributedDataParallel does not have.
void change_ddp_setting(const Change& change, BucketSettings& settings);

}  // namespace shardscope::analysis::attached
