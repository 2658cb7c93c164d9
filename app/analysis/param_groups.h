// The optimizer's parameter groups of a recorded run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/run_tables.h"

namespace shardscope::analysis {

/// For each parameter the number of its group; 0 if the run has no groups or the parameter is in none.
[[nodiscard]] std::vector<std::uint32_t> groups_of_params(const instrumentation::RunTables& tables);

/// A row of the summary.
struct ParamGroupRow {
  instrumentation::ParamGroupInfo settings;
  std::int64_t elems = 0;  ///< of its parameters, unpartitioned
  /// Elements of padding over all ranks; nullopt if the framework partitions differently.
  std::optional<std::int64_t> padding_elems;
};
/// Empty if the run has no groups: all trained parameters are then one group.
[[nodiscard]] std::vector<ParamGroupRow> param_groups(const instrumentation::RunTables& tables);
/// The group of a parameter as text: "no_decay (1 of 2): weight decay 0, learning rate 0.001 at the start";
/// empty if the run has no groups.
[[nodiscard]] std::string param_group_text(const instrumentation::RunTables& tables, std::uint32_t param);

}  // namespace shardscope::analysis
