// A comparison as a table for people and as JSON for programs.
#pragma once

#include <string>

#include "app/analysis/summary.h"
#include "app/analysis/verdict_basis.h"

namespace shardscope::cli {

[[nodiscard]] std::string comparison_text(const analysis::Comparison& comparison);
[[nodiscard]] std::string comparison_json(const analysis::Comparison& comparison,
                                          const analysis::VerdictBasis& basis);

}  // namespace shardscope::cli
