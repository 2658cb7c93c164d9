// Controls above the lists of Find and Statistics: words, range, filter, and keys for hits.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Draws "Selection", "Previous" and "Next" at the right of a panel's title.
void find_buttons(Context& ctx, Rect& room);
/// Draws the range, the words and the progress of the search in one line; removes its height from `room`.
void find_scope(Context& ctx, Rect& room);
/// The same with an input field for the words; true when Enter was pressed in it. `moved`: number of rows
/// moved by arrow keys.
bool find_line(Context& ctx, Rect& room, int& moved);
/// Draws the active parts of the filter, each with a button to remove it; removes their height from `room`.
void find_filter(Context& ctx, Rect& room);

}  // namespace shardscope::gui
