// Part of the Stepper: actions of a rank's scheduler and their reasons, what is next, its fetch counters and
// differences to another scheduler.
#pragma once

#include <cstdint>

#include "app/gui/model/fetch_counters_at.h"
#include "app/gui/model/scheduling_at.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class SchedulerPane {
 public:
  /// Draws a scrolling text; nothing before the rank's first gate.
  void draw(Context& ctx, Rect room);

 private:
  // Both draw at the top of `text` and remove their height; `gate` is the number of the current gate, `top`
  // the position of the text's begin including scrolling.
  void difference_link(Context& ctx, Rect& text, std::uint64_t gate);
  void counters_and_difference(Context& ctx, Rect& text, float top, std::uint64_t gate);

  float difference_top_ = 0;  ///< of the difference within the scrolled text
  SchedulingAt scheduling_;
  FetchCountersAt counters_;
};

}  // namespace shardscope::gui
