// Small plots on the canvas: a value per step, and bars of parts.
#pragma once

#include <string>
#include <vector>

#include "app/gui/views/context.h"

namespace shardscope::gui {

struct SeriesPlot {
  std::string title;
  std::string unit;
  std::vector<double> values;  ///< by step; NaN is a gap
  std::uint32_t first_step = 0;
  Rgb color = 0;
  bool from_zero = false;
  int digits = 3;
};
/// Returns the index of the value under the pointer, or -1; draws title, last value, axis and line.
int plot_series(Context& ctx, Rect rect, const SeriesPlot& series);

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
