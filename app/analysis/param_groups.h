// The optimizer's parameter groups of a recorded run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/run_tables.h"

namespace shardscope::analysis {

/// By parameter: the number of its group; 0 where the run gave none and of what is in none.
[[nodiscard]] std::vector<std::uint32_t> groups_of_params(const instrumentation::RunTables& tables);

/// A row of the summary.
struct ParamGroupRow {
  instrumentation::ParamGroupInfo settings;
  std::int64_t elems = 0;  ///< of its parameters, whole
  /// Elements of padding over all ranks; unknown where the run's framework lays shards out otherwise.
  std::optional<std::int64_t> padding_elems;
};
/// None where the run gave none: then all trained parameters are one group.
[[nodiscard]] std::vector<ParamGroupRow> param_groups(const instrumentation::RunTables& tables);
/// "no_decay (1 of 2): weight decay 0, learning rate 0.001 at the start": the group of a parameter, for
/// people; empty where the run gave none.
[[nodiscard]] std::string param_group_text(const instrumentation::RunTables& tables, std::uint32_t param);

}  // namespace shardscope::analysis
