// Part of the partition map: the legend of the cells' colours and patterns.
#pragma once

#include "app/gui/views/context.h"
#include "app/gui/views/partition_cells.h"

namespace shardscope::gui {

/// Draws squares and labels in a row while they fit, for the current style and the run's stage. `cells`:
/// those drawn.
void draw_partition_legend(Context& ctx, const Rect& room, PartitionCells& cells);

}  // namespace shardscope::gui
