// Moments of a recording with limits, on the ruler above the lanes.
#pragma once

#include "app/gui/model/time_axis.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Draws a diamond per moment over a bar that covers its kept range. True when the pointer is on a diamond; a
/// click goes to the moment.
bool draw_moments(Context& ctx, const Rect& ruler, const TimeScale& scale, bool takes_pointer);

}  // namespace shardscope::gui
