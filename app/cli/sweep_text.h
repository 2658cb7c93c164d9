// A comparison of several runs with the first, as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/sweep.h"

namespace shardscope::cli {

/// "A", "B", ... "Z": names of sides.
inline constexpr std::size_t kMostSides = 26;
[[nodiscard]] std::string side_letter(std::size_t side);

[[nodiscard]] std::string sweep_text(const analysis::Sweep& sweep);
/// `names`: of each side, a file or its settings.
[[nodiscard]] std::string sweep_json(const analysis::Sweep& sweep, const std::vector<std::string>& names);

}  // namespace shardscope::cli
