// Notes of the Memory panel on gradients that wait for reduction, and on what DeepSpeed allocates for them.
#pragma once

#include <string>

#include "instrumentation/emitter.h"

namespace shardscope::gui {

/// Note on the category reduce_bucket: for stage 2, and for runs whose buckets are buffers. Empty for other
/// stages and for programs other than zero_train, whose reduction differs.
[[nodiscard]] std::string bucket_note(const instrumentation::RunTables& tables);

}  // namespace shardscope::gui
