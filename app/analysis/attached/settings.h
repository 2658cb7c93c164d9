// Which settings `what-if` can be asked of an attached run, and why not the others: the answer of the command
// line and of the window alike.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/attached/replay.h"
#include "app/analysis/summary.h"
#include "instrumentation/run_tables.h"

namespace shardscope::analysis::attached {

/// Why no setting can be asked of a run of this framework or on this device, in a sentence without a full
/// stop; empty where some can. "" for a run of this runtime, which is no attached one.
[[nodiscard]] std::string why_no_settings(const instrumentation::RunTables& tables);
/// Why `key` ("zero_optimization.stage") cannot be asked of this run; empty where it can.
[[nodiscard]] std::string why_not_asked(const instrumentation::RunTables& tables, const std::string& key);
/// Why an option of `what-if` ("--search", "--link", "-o") is of no use for an attached run.
[[nodiscard]] std::string why_no_option(const std::string& option);
/// The keys that can be asked of a DeepSpeed run at some stage.
[[nodiscard]] const std::vector<std::string>& asked_keys();

/// The recorded settings with these changes. Throws std::invalid_argument: key, value, why it cannot be
/// asked, what can.
[[nodiscard]] plan::ZeroConfig changed_settings(const instrumentation::RunTables& tables,
                                                const plan::ZeroConfig& recorded,
                                                const std::vector<Change>& changes);

}  // namespace shardscope::analysis::attached
