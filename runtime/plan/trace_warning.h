// The line that DeepSpeed prints when a trace is invalidated, for people who compare both logs.
#pragma once

#include <string>

#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// What DeepSpeed prints with log_trace_cache_warnings, word for word. For parameters that differ, where
/// DeepSpeed has no such line, one of the same form.
[[nodiscard]] std::string trace_cache_warning(const Invalidation& invalidation);

}  // namespace shardscope::plan
