// Part of Memory: colour of each category, its size now and at the peak, and which are switched
// off.
#pragma once

#include <set>
#include <vector>

#include "app/gui/model/memory_stack.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Categories with the same meaning differ in shade.
[[nodiscard]] Rgb shade(const Palette& colors, ev::MemoryCategory category);

class MemoryLegend {
 public:
  /// Switched off by a click: excluded from the stack and its sums.
  [[nodiscard]] bool hides(ev::MemoryCategory category) const { return hidden_.contains(category); }

  /// Width of the legend when it is beside the curve.
  [[nodiscard]] static float width_beside(float panel);
  /// Draws a line per category of `used` with its size now and at the peak, and the sums. If not all fit, the
  /// smallest share one line.
  void draw_beside(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used,
                   const store::MemorySample& now, const store::MemorySample& peak);

  /// Height of the names below the curve, used when there is no room beside it.
  [[nodiscard]] static float height_below(const Canvas& canvas, float width,
                                          const std::vector<ev::MemoryCategory>& used);
  /// Names and colours in rows, without sizes.
  void draw_below(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used);

 private:
  /// A square and a name that toggle a category. True: it is off.
  bool toggled(Context& ctx, const Rect& place, ev::MemoryCategory category);

  std::set<ev::MemoryCategory> hidden_;
};

}  // namespace shardscope::gui
