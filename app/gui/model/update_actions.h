// Actions of the optimizer update: clipping, ZenFlow's choices and votes, LoCo's resets.
#pragma once

#include <optional>

#include "app/analysis/decision_text.h"
#include "app/gui/model/scheduler_actions.h"

namespace shardscope::gui {

/// nullopt unless the event belongs to the optimizer update and reports an action.
[[nodiscard]] std::optional<SchedulerAction> update_action(const store::Store& store, const ev::Event& event,
                                                           const analysis::DecisionLimits& limits);

}  // namespace shardscope::gui
