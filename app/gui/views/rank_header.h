// Header of a rank in the timeline: name, pace, and an overview strip while its lanes are hidden; and header
// of a group of ranks.
#pragma once

#include "app/gui/model/rank_pace.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"
#include "app/gui/views/span_painter.h"

namespace shardscope::gui {

/// `clicked`: the header was clicked (RankDrag).
void draw_rank_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      const TimeScale& scale, const RankPaces& paces, bool clicked);
/// A rank as a low row: a bar for its computation, and its activity as colours.
void draw_heat_row(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                   SpanPainter& painter, const RankPaces& paces, bool clicked);
/// Name and ranks of a group; the mean of its ranks while they are hidden.
void draw_node_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      SpanPainter& painter);

}  // namespace shardscope::gui
