// What a rank's events say of stage 3, in the terms of tests/golden/coordinator.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::engine::testing {

/// One entry per micro-step of a stage-3 run: mode, available_at_start, events, available_after_step.
/// `events` are one rank's, each lane in its own order (any order between lanes). As in the files a missing
/// list is an empty one; what events do not show is left out: the handles waited for, and releases of
/// nothing. Throws std::runtime_error where the lanes contradict each other.
[[nodiscard]] nlohmann::json emitted_fetches(const plan::ModelPlan& model,
                                             const std::vector<instrumentation::Event>& events);

}  // namespace shardscope::engine::testing
