// Relations of a span (model/relations.h) as arrows over the timeline's lanes.
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

/// Draws arrows of the selected span, or else of the span under the pointer. Arrows of the span under the
/// pointer are thicker, and its related spans are outlined. A legend names the colours.
void draw_relations(Context& ctx, const TimelineRows& rows, const Rect& lanes, const TimeScale& scale,
                    const std::optional<HoveredSpan>& hovered);

}  // namespace shardscope::gui
