// The line that DeepSpeed prints when a trace is invalidated, so that both logs can be compared.
#pragma once

#include <string>

#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// DeepSpeed's text with log_trace_cache_warnings, word for word. For differing parameters, where DeepSpeed
/// prints no such line, one of the same form.
[[nodiscard]] std::string trace_cache_warning(const Invalidation& invalidation);

}  // namespace shardscope::plan
