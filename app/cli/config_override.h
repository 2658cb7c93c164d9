// `--set zero_optimization.overlap_comm=false`: keys over a DeepSpeed file.
#pragma once

#include <string>
#include <vector>

namespace shardscope::cli {

/// Text of the configuration with each KEY=VALUE applied (VALUE is JSON; what is not JSON is a string).
/// Throws UserError for an unreadable file, broken JSON (line, column) or a malformed assignment.
[[nodiscard]] std::string config_with(const std::string& path, const std::vector<std::string>& assignments);

}  // namespace shardscope::cli
