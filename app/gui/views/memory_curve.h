// Part of Memory: memory in a rank's pool over time, stacked by category, with the model states, the peak and
// the prediction of ZeRO's formula.
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
  /// Draws the current rank, pool and range, without categories that `legend` hides. `peak`: of that pool.
  /// Marks `from_ns`, the begin of a difference. Dragging moves the visible range; a click sets the
  /// cursor.
  void draw(Context& ctx, const Rect& room, const store::MemorySample& peak, const MemoryLegend& legend,
            std::optional<std::int64_t> from_ns);
  /// Categories with bytes in the last drawing, in stacking order.
  [[nodiscard]] std::vector<ev::MemoryCategory> used() const { return used_categories(columns_); }

 private:
  void outside_line(Context& ctx, const TimeScale& scale);
  void hover(Context& ctx, const TimeScale& scale);
  static void keys(Context& ctx, const Rect& room, const TimeScale& scale, bool menu);

  std::vector<store::MemorySample> columns_;  ///< one per kColumn pixels: its maximum
};

}  // namespace shardscope::gui
