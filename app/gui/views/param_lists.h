// Part of the Stepper: a rank's parameters that are available, in flight and not available.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

enum class ParamRoom : std::uint8_t { share, all };
/// Draws a bar with the shares of elements and the three lists at the top of `room`, in all of it or a share.
/// Without tables, and below stage 3, a line that explains why there is no list.
void draw_param_lists(Context& ctx, Rect& room, ParamRoom takes);

}  // namespace shardscope::gui
