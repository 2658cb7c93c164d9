// The user's notes as flags on the ruler above the lanes.
#pragma once

#include "app/gui/model/time_axis.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// True when the pointer is on a flag; a click goes to its note.
bool draw_note_flags(Context& ctx, const Rect& ruler, const TimeScale& scale);
/// Draws a thin line through the lanes at each note.
void draw_note_lines(Context& ctx, const Rect& lanes, const TimeScale& scale);

}  // namespace shardscope::gui
