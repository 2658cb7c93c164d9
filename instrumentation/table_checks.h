// What static tables must hold, wherever they come from; views, metrics and the planner rely on it.
#pragma once

#include "instrumentation/emitter.h"

namespace shardscope::instrumentation {

/// In words, the first thing that no run can have: a rank outside the world, ids out of order, a module
/// before its parent, a reference to nothing, a negative or absurd size. nullptr if there is none.
[[nodiscard]] const char* what_is_wrong(const RunTables& tables) noexcept;

}  // namespace shardscope::instrumentation
