// Part of the Stepper: where the run's fetch scheduler and another one decide differently.
#pragma once

#include <string>

#include "app/analysis/scheduling.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// "Here DeepSpeed would decide differently", or at how many module boundaries; empty if the two agree or the
/// comparison is unknown.
[[nodiscard]] std::string scheduler_difference_line(const analysis::Scheduling& scheduling,
                                                    std::uint64_t here);

/// Draws totals of both and a card for each module boundary at which they differ; `here` is the number of the
/// rank's current gate. A click on a card goes to its gate. Returns the height used.
float draw_scheduler_difference(Context& ctx, Rect room, const analysis::Scheduling& scheduling,
                                std::uint64_t here);

}  // namespace shardscope::gui
