// Marks over the timeline's lanes: missing data, pauses, the end of a rank, and arrivals of ranks at the
// selected collective.
#pragma once

#include "app/gui/model/flush_marks.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

void draw_gaps(Context& ctx, std::uint32_t rank, const Rect& rect, const TimeScale& scale);
/// `store`: of the run, or of the one it is compared with.
void draw_pauses(Context& ctx, const store::Store& store, std::uint32_t rank, const Rect& rect,
                 const TimeScale& scale);
/// Marks the last event of a rank that ended before the run.
void draw_rank_end(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale);
/// On the first reduce row of a rank: bucket flushes and their reasons. True when the pointer is on a
/// mark.
bool draw_flushes(Context& ctx, std::uint32_t rank, const Rect& rect, const TimeScale& scale);
/// The mark of a flush takes this much on each side of its time, in pixels.
inline constexpr float kFlushMarkHalf = 5;
/// The mark as drawn above and in the legend: solid for a full bucket, hollow for a partial one.
void draw_flush_mark(Context& ctx, float x, float y, FlushShape shape);
/// The selected collective on all ranks: a line through their arrival times, the last arrival in red, since
/// the others waited for it.
void draw_arrivals(Context& ctx, const TimelineRows& rows, const Rect& lanes, const TimeScale& scale);

}  // namespace shardscope::gui
