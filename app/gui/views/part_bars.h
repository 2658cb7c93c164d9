// Bars on the canvas that are divided into parts: a rank's time and communication.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

struct Part {
  std::string label;
  double value = 0;
  Rgb color = 0;
  bool hatched = false;
};
/// One bar divided by the parts' shares of `whole`; a tooltip names each part.
void stacked_bar(Context& ctx, const Rect& rect, const std::vector<Part>& parts, double whole,
                 const std::function<std::string(double)>& text);

/// The parts of a rank's time (metrics 2.2), in order; if unknown, a single part with the reason.
[[nodiscard]] std::vector<Part> time_parts(const Palette& colors, const analysis::RankSummary& rank);
/// A rank's communication: hidden behind computation, and exposed.
[[nodiscard]] std::vector<Part> overlap_parts(const Palette& colors, const analysis::RankSummary& rank);
/// Draws names and colours of these parts in a row.
void time_legend(Context& ctx, Rect rect, const analysis::RankSummary& rank);

}  // namespace shardscope::gui
