// Part of the Stepper: the fetch counters of one micro-step.
#pragma once

#include <optional>

#include "app/analysis/coordinator.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// "Fetches of micro-step 12 counted on rank 0"; without a number if unknown.
[[nodiscard]] std::string fetch_counter_heading(const std::optional<analysis::MicroStepCounters>& counters,
                                                std::uint32_t rank);

/// Draws DeepSpeed's eight counters as four rows, for forward and backward, with units. Returns the height
/// used.
float draw_fetch_counters(Context& ctx, Rect room,
                          const std::optional<analysis::MicroStepCounters>& counters);

}  // namespace shardscope::gui
