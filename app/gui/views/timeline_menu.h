// Controls in the timeline's title line: what it shows, and in which order.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

void timeline_header(Context& ctx, Rect& room);
/// Shows what the rank filter hides, and a button to reset it; removes its line from `room`. Nothing without
/// a filter.
void filter_strip(Context& ctx, Rect& room);
/// Shows or hides the status of the selected parameter on every rank.
void follow_selected(Context& ctx);
[[nodiscard]] bool follows_selected(const Context& ctx);

}  // namespace shardscope::gui
