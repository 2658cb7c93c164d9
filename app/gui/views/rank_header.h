// The head of a rank in the timeline: its name and pace, and its strip while its lanes are hidden.
#pragma once

#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

void draw_rank_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      const TimeScale& scale);

}  // namespace shardscope::gui
