// The stage-3 scheduler's part of `zero_optimization`.
#pragma once

#include "runtime/plan/scheduler.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// `stage3_allgather_sequential` makes the prefetch bucket one element (docs/zero.md P13).
[[nodiscard]] SchedulerConfig make_scheduler_config(const ZeroConfig& zero) noexcept;

}  // namespace shardscope::plan
