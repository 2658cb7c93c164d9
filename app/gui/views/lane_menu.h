// A lane of the timeline: its name at the left, and the menu for the levels of nesting that are shown.
#pragma once

#include <optional>

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Draws the name in `gutter`, with the number of levels that are hidden. Right button: the menu.
void draw_lane_name(Context& ctx, const TimelineRow& row, const Rect& gutter);
void open_lane_menu(Context& ctx, const TimelineRow& row, std::optional<Rect> anchor = {});

}  // namespace shardscope::gui
