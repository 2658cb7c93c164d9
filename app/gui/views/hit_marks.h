// Marks of the spans that were found, on the rows of the timeline.
#pragma once

#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// A line under each hit of the row; of a rank whose lanes are hidden, of all its lanes.
void mark_hits(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale);

}  // namespace shardscope::gui
