// What the Memory panel says of gradients on their way to their owner, and of what DeepSpeed holds there.
#pragma once

#include <string>

#include "instrumentation/emitter.h"

namespace shardscope::gui {

/// Note on the category reduce_bucket of a stage-2 run, or of one whose buckets are buffers; empty in other
/// stages, and for programs that are not zero_train, which reduce by rules of their own.
[[nodiscard]] std::string bucket_note(const instrumentation::RunTables& tables);

}  // namespace shardscope::gui
