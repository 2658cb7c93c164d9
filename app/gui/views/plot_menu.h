// The context menu of a plot: its value axis, and what the plot adds.
#pragma once

#include <string>
#include <vector>

#include "app/gui/model/plot_scales.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// The right button was pressed and released over the current plot without a drag, which zooms. Between
/// ImPlot's BeginPlot() and EndPlot().
[[nodiscard]] bool plot_menu_clicked();
/// The same over a rectangle of the canvas.
[[nodiscard]] bool menu_clicked(const Context& ctx, const Rect& rect);

/// Opens the menu below `anchor`. `plot`: the name by which the choice of the axis is kept.
void open_plot_menu(Context& ctx, const Rect& anchor, const std::string& plot,
                    std::vector<OverlayItem> more = {});

/// Switches whether a plot shares the timeline's range (linked_axes.h).
[[nodiscard]] OverlayItem linked_item(bool& linked);
/// Place for a menu at the pointer.
[[nodiscard]] Rect at_pointer(const Context& ctx);

}  // namespace shardscope::gui
