// Part of the Stepper: where the run's fetch scheduler and another one decide otherwise.
#pragma once

#include <string>

#include "app/analysis/scheduling.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// "Here DeepSpeed would decide otherwise", or at how many boundaries; empty where the two decide alike or
/// nothing is known.
[[nodiscard]] std::string scheduler_difference_line(const analysis::Scheduling& scheduling,
                                                    std::uint64_t here);

/// Draws totals of both and one card for each boundary at which they part; `here` is the gate that the rank
/// stands at, its number. A click on a card goes to its gate. Returns the height used.
float draw_scheduler_difference(Context& ctx, Rect room, const analysis::Scheduling& scheduling,
                                std::uint64_t here);

}  // namespace shardscope::gui
