// A comparison as a table for people and as JSON for programs.
#pragma once

#include <string>

#include "app/analysis/compared_rows.h"
#include "app/analysis/summary.h"
#include "app/analysis/verdict_basis.h"

namespace shardscope::cli {

[[nodiscard]] std::string comparison_text(const analysis::Comparison& comparison);
[[nodiscard]] std::string comparison_json(const analysis::Comparison& comparison,
                                          const analysis::VerdictBasis& basis);
/// The largest changes of a table by module, collective, parameter, rank or category of memory.
[[nodiscard]] std::string compared_rows_text(const analysis::ComparedRows& rows);
/// All of them, as an array under the key "by" of a comparison's JSON.
[[nodiscard]] std::string with_rows(const std::string& comparison_json, const analysis::ComparedRows& rows);

}  // namespace shardscope::cli
