// The files of a recording that goes on in several, in words and as JSON: `info` and `summary`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/store/recording.h"

namespace shardscope::cli {

/// A line for each file that is here, and one for each stretch of those that are not. Empty for a recording
/// that is one file.
[[nodiscard]] std::vector<std::string> parts_text(const std::vector<store::RecordingPart>& parts);
/// "in 5 files, of which the newest 3 are here"; empty likewise.
[[nodiscard]] std::string parts_in_short(const std::vector<store::RecordingPart>& parts);
/// null for a recording that is one file.
[[nodiscard]] nlohmann::json parts_json(const std::vector<store::RecordingPart>& parts);

}  // namespace shardscope::cli
