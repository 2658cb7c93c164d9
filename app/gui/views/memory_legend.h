// Part of Memory: what colour each category has, how much it holds now and at the peak, and which ones are
// switched off.
#pragma once

#include <set>
#include <vector>

#include "app/gui/model/memory_stack.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Categories of one meaning are distinguished by shade.
[[nodiscard]] Rgb shade(const Palette& colors, ev::MemoryCategory category);

class MemoryLegend {
 public:
  /// Switched off with a click: not in the stack, nor in its sums.
  [[nodiscard]] bool hides(ev::MemoryCategory category) const { return hidden_.contains(category); }

  /// How much of a panel's width the legend takes beside the curve.
  [[nodiscard]] static float width_beside(float panel);
  /// A line for each category of `used` with what it holds now and at the peak, and their sums. Where there
  /// is not room for all the smallest are one line.
  void draw_beside(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used,
                   const store::MemorySample& now, const store::MemorySample& peak);

  /// Height of the names under the curve, where there is no room beside it.
  [[nodiscard]] static float height_below(const Canvas& canvas, float width,
                                          const std::vector<ev::MemoryCategory>& used);
  /// Names and colours in rows, without amounts.
  void draw_below(Context& ctx, Rect room, const std::vector<ev::MemoryCategory>& used);

 private:
  /// A square and a name that switch a category off and on again. True: it is off.
  bool toggled(Context& ctx, const Rect& place, ev::MemoryCategory category);

  std::set<ev::MemoryCategory> hidden_;
};

}  // namespace shardscope::gui
