// Whether two runs trained the same: with different models, ranks or batches, a comparison does not show the
// effect of a setting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// The begin of the entry for different batch sizes.
inline constexpr std::string_view kUnlikeTokens = "tokens of a step";
/// "model: gpt2 (124,439,808 parameters) and gpt-mini (...)", "ranks: 2 and 4", "tokens of a step: ...".
/// Empty: no difference in what both recorded.
[[nodiscard]] std::vector<std::string> unlike_trainings(const Run& a, const Run& b);
/// " (model: ...; ranks: ...)".
[[nodiscard]] std::string unlike_text(const std::vector<std::string>& unlike);

}  // namespace shardscope::analysis
