// Plots with ImPlot: values per step, and distributions.
#pragma once

#include <string>
#include <vector>

#include "app/gui/views/context.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {

struct Curve {
  std::string label;
  std::vector<double> values;  ///< by step; NaN is a gap
  Rgb color = 0;
  bool sparse = false;  ///< has gaps: the line connects values across them and marks each
};
/// Values per step in an ImPlot plot. All step plots share their x axis: zooming one zooms all, a double
/// click shows all steps. The visible range of the timeline is a band; the cursor and the time under the
/// pointer, in any panel, are lines.
struct StepPlot {
  std::string title, unit;
  std::vector<Curve> curves;
  std::uint32_t first_step = 0;
  bool from_zero = false;
  bool logarithmic = false;
  int digits = 3;
  std::string kept_as{};  ///< name of the choice of its axis (PlotScales); empty: the title
};
/// Right button, or Enter: a menu for the axis, the steps and the curves. Arrow keys: the step beside, zoom.
/// Returns the index of the clicked step, or -1.
int step_plot(Context& ctx, const Rect& rect, const StepPlot& plot);

/// Histograms: bars with the fraction of each curve's values per bin, overlaid.
struct Distribution {
  std::string title, unit;
  std::vector<Curve> curves;
  int digits = 3;
};
void distribution_plot(Context& ctx, const Rect& rect, const Distribution& plot);

/// Begins an ImPlot plot in `rect` with the panel's fonts; end with end_plot(). False if there is no room.
bool begin_plot(Context& ctx, const char* id, const Rect& rect, int flags = 0);
void end_plot(Context& ctx);
/// The button was pressed and released over the plot without a drag, which would pan it.
[[nodiscard]] bool plot_clicked();

}  // namespace shardscope::gui
