// Context menus of spans and ranks in the timeline.
#pragma once

#include <cstdint>
#include <optional>

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Selects the span and opens its menu below `anchor`, or at the pointer.
void open_span_menu(Context& ctx, store::LaneId lane, const store::Span& span,
                    std::optional<Rect> anchor = {});
void open_rank_menu(Context& ctx, std::uint32_t rank, std::optional<Rect> anchor = {});
/// Sets the visible range to the span with a margin.
void zoom_to_span(AppState& app, store::LaneId lane, const store::Span& span);

}  // namespace shardscope::gui
