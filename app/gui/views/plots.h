// Plots: values per step and distributions by ImPlot; bars of parts on the canvas.
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
  bool sparse = false;  ///< not every step has a value: the line joins them over the gaps, each marked
};
/// Values per step in a plot of ImPlot. The x axes of all step plots are one: zooming any zooms all, a double
/// click shows every step again. What the timeline shows is a band, and the time that "now" means a line.
struct StepPlot {
  std::string title, unit;
  std::vector<Curve> curves;
  std::uint32_t first_step = 0;
  bool from_zero = false;
  bool logarithmic = false;
  int digits = 3;
};
/// Returns the index of the step that was clicked, or -1.
int step_plot(Context& ctx, const Rect& rect, const StepPlot& plot);

/// How values are distributed: bars of the share of each curve's values in a bin, drawn over one another.
struct Distribution {
  std::string title, unit;
  std::vector<Curve> curves;
  int digits = 3;
};
void distribution_plot(Context& ctx, const Rect& rect, const Distribution& plot);

/// Between these ImPlot draws in `rect` with the panel's fonts. Returns false where there is no room.
bool begin_plot(Context& ctx, const char* id, const Rect& rect, int flags = 0);
void end_plot(Context& ctx);
/// The button was pressed and released over the plot without a drag, which pans it.
[[nodiscard]] bool plot_clicked();

struct Part {
  std::string label;
  double value = 0;
  Rgb color = 0;
  bool hatched = false;
};
/// One bar that is divided by the parts' shares of `whole`; hovering says what each is.
void stacked_bar(Context& ctx, const Rect& rect, const std::vector<Part>& parts, double whole,
                 const std::function<std::string(double)>& text);

/// The parts of a rank's time (metrics 2.2), in order; where they are not known, one that says so.
[[nodiscard]] std::vector<Part> time_parts(const Palette& colors, const analysis::RankSummary& rank);
/// Communication of a rank: hidden behind computation, and exposed.
[[nodiscard]] std::vector<Part> overlap_parts(const Palette& colors, const analysis::RankSummary& rank);
/// Names and colours of those parts in a row.
void time_legend(Context& ctx, Rect rect, const analysis::RankSummary& rank);

}  // namespace shardscope::gui
