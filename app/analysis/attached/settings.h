// The settings of an attached run that `what-if` can change, and why not the others; shared by command line
// and window.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/attached/replay.h"
#include "app/analysis/framework.h"
#include "app/analysis/summary.h"
#include "instrumentation/run_tables.h"

namespace shardscope::analysis::attached {

/// Why no setting can be changed for this framework, as a sentence without a full stop; empty if
/// some can, and for a run of this runtime, which is not attached.
[[nodiscard]] std::string why_no_settings(const instrumentation::RunTables& tables);
/// Why `key` ("zero_optimization.stage") cannot be changed for this run; empty if it can.
[[nodiscard]] std::string why_not_asked(const instrumentation::RunTables& tables, const std::string& key);
/// Why an option of `what-if` ("--search", "--link", "-o") does not apply to this attached run.
[[nodiscard]] std::string why_no_option(const instrumentation::RunTables& tables, const std::string& option);
/// The keys that can be changed for a run of the framework: DeepSpeed (at some stage), FSDP2 or DDP.
[[nodiscard]] const std::vector<std::string>& supported_keys(Framework framework);

/// Applies the changes to the recorded settings. Throws std::invalid_argument: key, value, why it cannot be
/// changed, what can.
[[nodiscard]] ReplaySettings changed_settings(const instrumentation::RunTables& tables,
                                              const ReplaySettings& recorded,
                                              const std::vector<Change>& changes);

}  // namespace shardscope::analysis::attached
