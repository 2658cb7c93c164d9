// The relations of a span (model/relations.h) as arrows over the lanes of the timeline.
#pragma once

#include <optional>

#include "app/gui/model/relations.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

struct HoveredSpan {
  store::LaneId lane;
  store::Span span;
};

/// Arrows of the selected span; where none is selected, of the one under the pointer. Arrows of the one under
/// the pointer are thicker than the others, and what it is joined to is outlined. A legend names the colours.
void draw_relations(Context& ctx, const TimelineRows& rows, const Rect& lanes, const TimeScale& scale,
                    const std::optional<HoveredSpan>& hovered);

}  // namespace shardscope::gui
