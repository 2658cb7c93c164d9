// The controls in the timeline's title: what it shows, and in which order.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

void timeline_header(Context& ctx, Rect& room);
/// What the filter of ranks hides, and how to see all again; takes its line off `room`, none without a
/// filter.
void filter_strip(Context& ctx, Rect& room);
/// Shows the selected parameter on the timeline, of every rank, or no longer.
void follow_selected(Context& ctx);
[[nodiscard]] bool follows_selected(const Context& ctx);

}  // namespace shardscope::gui
