// Marks of search hits on the rows of the timeline.
#pragma once

#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Underlines each hit of the row; for a rank with hidden lanes the hits of all its lanes.
void mark_hits(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale);

}  // namespace shardscope::gui
