// A summary for people: what `summary` prints on a terminal.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/summary.h"

namespace shardscope::cli {

[[nodiscard]] std::string summary_text(const analysis::Summary& summary);
[[nodiscard]] std::string findings_text(const std::vector<analysis::Finding>& findings, bool simulated);

}  // namespace shardscope::cli
