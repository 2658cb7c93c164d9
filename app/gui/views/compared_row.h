// Part of Compare: a chosen row of a table: its times per step in both runs, and where a click on it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/gui/model/compared_series.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Difference with its interval, time of each step of A and B, and their distributions over one another.
/// Returns whether the step times are wanted again.
[[nodiscard]] bool draw_compared_row(Context& ctx, Rect room, const ComparedSeries& row,
                                     const std::string& title);

/// Selects the module, moves to the phase in the current step, or lets the finder search for the collectives.
/// Of `rank`, or of the lowest.
void go_to_compared(Context& ctx, SeriesOf of, const ComparedSeries& row, std::optional<std::uint32_t> rank);
/// Selects the parameter with this full name.
void go_to_compared_param(Context& ctx, const std::string& name, std::optional<std::uint32_t> rank);

}  // namespace shardscope::gui
