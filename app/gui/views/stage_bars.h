// Part of Memory: predicted size of one rank's model states at stages 0 to 3.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Stages 0 to 3 for this model and world, on one scale; with a mark at the peak of a measured run.
void draw_stage_bars(Context& ctx, Rect room);

}  // namespace shardscope::gui
