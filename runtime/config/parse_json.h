// Parses the text of a configuration as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shardscope::config {

/// Comments are allowed. Throws ConfigError with `file`, line and column: not JSON, a zero byte, a key given
/// twice, a number beyond a double, more than 4 MiB or 64 levels.
[[nodiscard]] nlohmann::json parse_json(const std::string& text, const std::string& file);

}  // namespace shardscope::config
