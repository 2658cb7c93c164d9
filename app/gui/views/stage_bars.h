// Part of Memory: what the model states of one rank would take at stages 0 to 3.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Stages 0 to 3 for this model and world, on one scale; where a run was measured, its peak as a mark.
void draw_stage_bars(Context& ctx, Rect room);

}  // namespace shardscope::gui
