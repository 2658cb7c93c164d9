// What is drawn over the lanes of the timeline: what is missing, pauses, where a rank ended, and when ranks
// came to the selected collective.
#pragma once

#include "app/gui/model/flush_marks.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

void draw_gaps(Context& ctx, std::uint32_t rank, const Rect& rect, const TimeScale& scale);
/// `store` is that of the run or of the one it is compared with.
void draw_pauses(Context& ctx, const store::Store& store, std::uint32_t rank, const Rect& rect,
                 const TimeScale& scale);
/// Where the events of a rank end before the run does.
void draw_rank_end(Context& ctx, const TimelineRow& row, const Rect& rect, const TimeScale& scale);
/// On the first reduce row of a rank: where buckets were flushed, and why. False where the pointer is on
/// none.
bool draw_flushes(Context& ctx, std::uint32_t rank, const Rect& rect, const TimeScale& scale);
/// As above and in the legend: solid where a bucket was full, hollow where something had ended.
void draw_flush_mark(Context& ctx, float x, float y, FlushShape shape);
/// The selected collective on all ranks: a line through the moments at which they came to it, the last in
/// red, since the others waited for that one.
void draw_arrivals(Context& ctx, const TimelineRows& rows, const Rect& lanes, const TimeScale& scale);

}  // namespace shardscope::gui
