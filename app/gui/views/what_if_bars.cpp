#include "app/gui/views/what_if_bars.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "app/gui/model/format.h"

namespace shardscope::gui {

void draw_step_times(Context& ctx, Rect& room, const WhatIfResult& result) {
  const Palette& c = ctx.colors();
  const double most = std::max({result.recorded_ms, result.modelled_ms, result.predicted_ms, 1e-9});
  struct TimeBar {
    const char* label;
    double ms;
    Rgb color;
    std::string note, tip;
  };
  const std::string sign = result.change_pct > 0 ? "+" : result.change_pct < 0 ? "\u2212" : "";
  const std::string error = result.model_error_pct > 0 ? "+" : result.model_error_pct < 0 ? "\u2212" : "";
  const std::array rows{
      TimeBar{"now, recorded", result.recorded_ms, c.runs[0], "", "Median step of the recording"},
      TimeBar{"now, modelled", result.modelled_ms, mix(c.runs[0], c.panel, 0.4F),
              error + decimal(std::fabs(result.model_error_pct), 1) + " %",
              "The recorded settings, simulated with the model that is fitted to this recording; the "
              "percentage is the model's error"},
      TimeBar{"predicted", result.predicted_ms, c.runs[1],
              sign + decimal(std::fabs(result.change_pct), 1) + " %",
              "Recorded time + (modelled time with the changes - modelled time now)"}};
  for (const TimeBar& bar : rows) {
    Rect line = room.take_top(24);
    const Rect whole = line;
    ctx.canvas.text_in(line.take_left(110), bar.label, c.muted, Font::small);
    ctx.canvas.text_in(line.take_right(76), bar.note, c.text, Font::mono_small, Align::right);
    ctx.canvas.text_in(line.take_right(84), milliseconds(bar.ms).text(), c.text, Font::mono, Align::right);
    line.take_right(10);
    if (std::isfinite(bar.ms))
      ctx.canvas.fill({line.x, line.y + 5, line.w * static_cast<float>(bar.ms / most), line.h - 10},
                      bar.color, 1, 2);
    if (ctx.hovered(whole)) ctx.tip(bar.tip);
  }
}

}  // namespace shardscope::gui
