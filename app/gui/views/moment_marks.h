// Moments of a recording with limits, on the times above the lanes.
#pragma once

#include "app/gui/model/time_axis.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// A diamond at each, over a bar as long as what is kept around it. True when the pointer is on a diamond: a
/// click goes to its moment.
bool draw_moments(Context& ctx, const Rect& ruler, const TimeScale& scale, bool takes_pointer);

}  // namespace shardscope::gui
