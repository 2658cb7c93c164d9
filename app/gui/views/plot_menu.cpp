#include "app/gui/views/plot_menu.h"

#include <implot.h>

#include <utility>

namespace shardscope::gui {
namespace {

bool released_without_drag() {
  constexpr float kStill = 9;  // square of points
  return ImGui::IsMouseReleased(1) && ImGui::GetIO().MouseDragMaxDistanceSqr[1] < kStill;
}

}  // namespace

bool plot_menu_clicked() { return ImPlot::IsPlotHovered() && released_without_drag(); }

bool menu_clicked(const Context& ctx, const Rect& rect) {
  return ctx.hovered(rect) && released_without_drag();
}

void open_plot_menu(Context& ctx, const Rect& anchor, const std::string& plot,
                    std::vector<OverlayItem> more) {
  PlotScales& scales = ctx.app.plot_scales;
  static constexpr const char* kLabels[] = {"Automatic axis", "Linear axis", "Logarithmic axis"};
  static constexpr const char* kHints[] = {"log over three decades", "", ""};
  std::vector<OverlayItem> items;
  for (const AxisScale scale : kAxisScales) {
    const auto i = static_cast<std::size_t>(scale);
    items.push_back({kLabels[i], kHints[i], true, scales.of(plot) == scale,
                     [&scales, plot, scale] { scales.set(plot, scale); }});
  }
  bool line = true;
  for (OverlayItem& item : more) {
    item.line_before = std::exchange(line, false);
    items.push_back(std::move(item));
  }
  ctx.menu(anchor, std::move(items));
}

OverlayItem linked_item(bool& linked) {
  return {"Range of the timeline", "zooms with it", true, linked, [&linked] { linked = !linked; }};
}

Rect at_pointer(const Context& ctx) { return {ctx.pointer.x, ctx.pointer.y, 1, 1}; }

}  // namespace shardscope::gui
