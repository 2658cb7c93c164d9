// Part of Memory: what a rank's pool held over time, stacked by category, with the model states, the peak and
// what ZeRO's expression predicts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/memory_stack.h"
#include "app/gui/views/context.h"
#include "app/gui/views/memory_legend.h"

namespace shardscope::gui {

class MemoryCurve {
 public:
  /// Draws the rank, pool and times that the window shows, without what `legend` hides. `peak`: of that pool.
  /// `from_ns` is marked as where a difference begins. Dragging moves the window's times; a click sets its
  /// cursor.
  void draw(Context& ctx, const Rect& room, const store::MemorySample& peak, const MemoryLegend& legend,
            std::optional<std::int64_t> from_ns);
  /// Categories that hold anything in what was drawn last, in stacking order.
  [[nodiscard]] std::vector<ev::MemoryCategory> used() const { return used_categories(columns_); }

 private:
  void outside_line(Context& ctx, const TimeScale& scale);
  void hover(Context& ctx, const TimeScale& scale);

  std::vector<store::MemorySample> columns_;  ///< one for every kColumn pixels, the highest within
};

}  // namespace shardscope::gui
