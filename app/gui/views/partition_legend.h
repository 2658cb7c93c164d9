// Part of the partition map: what the colours and patterns of its cells mean.
#pragma once

#include "app/gui/views/context.h"
#include "app/gui/views/partition_cells.h"

namespace shardscope::gui {

/// Squares and words in a row until it is full, for this style and the run's stage. `cells`: those that were
/// drawn.
void draw_partition_legend(Context& ctx, const Rect& room, PartitionCells& cells);

}  // namespace shardscope::gui
