// Invariants of static tables from any source; views, metrics and the planner rely on them.
#pragma once

#include "instrumentation/emitter.h"

namespace shardscope::instrumentation {

/// The first violation as a text: a rank outside the world, ids out of order, a module before its parent, a
/// dangling reference, a negative or absurd size. nullptr if there is none.
[[nodiscard]] const char* validate(const RunTables& tables) noexcept;

}  // namespace shardscope::instrumentation
