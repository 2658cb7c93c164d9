// Part of Memory: gathered parameters held after their last use in the current step.
#pragma once

#include <cstdint>

#include "app/gui/model/held_long.h"
#include "app/gui/views/context.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {

class HeldPane {
 public:
  /// Draws the current rank, for any pool: gathered parameters are in device memory.
  void draw(Context& ctx, Rect room);

 private:
  std::uint64_t run_ = 0;  ///< Session::number()
  std::uint32_t rank_ = 0, step_ = 0;
  HeldLong held_;
  Table table_;
  TableState state_;
};

}  // namespace shardscope::gui
