// What Find and Statistics have in common above their lists: words, range, filter, and the keys of hits.
#pragma once

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// "Selection", "Previous", "Next" at the right of a panel's title.
void find_buttons(Context& ctx, Rect& room);
/// A line with the range, the words as text and how far the search has got. Takes its room.
void find_scope(Context& ctx, Rect& room);
/// The same with a field for the words; true when Enter was pressed in it. `moved`: by how many rows the
/// arrows went.
bool find_line(Context& ctx, Rect& room, int& moved);
/// The parts of the filter, each with what takes it away; nothing where there is none. Takes its room.
void find_filter(Context& ctx, Rect& room);

}  // namespace shardscope::gui
