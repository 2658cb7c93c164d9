// The head of a rank in the timeline: its name and pace, and its strip while its lanes are hidden; and of the
// ranks of a node.
#pragma once

#include "app/gui/model/rank_pace.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"
#include "app/gui/views/span_painter.h"

namespace shardscope::gui {

/// `clicked`: it was, here and below (RankDrag).
void draw_rank_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      const TimeScale& scale, const RankPaces& paces, bool clicked);
/// A rank where there are very many: a bar for its computation, and what it did as colours.
void draw_heat_row(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                   SpanPainter& painter, const RankPaces& paces, bool clicked);
/// Host and ranks of a node; the mean of its ranks while they are hidden.
void draw_node_header(Context& ctx, const TimelineRow& row, const Rect& gutter, const Rect& lanes,
                      SpanPainter& painter);

}  // namespace shardscope::gui
