// Part of the Stepper: what a rank's scheduler did and why, what is next, what its fetches counted and where
// another scheduler would decide otherwise.
#pragma once

#include <cstdint>

#include "app/gui/model/fetch_counters_at.h"
#include "app/gui/model/scheduling_at.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class SchedulerPane {
 public:
  /// A text that scrolls; nothing where the rank has passed no gate.
  void draw(Context& ctx, Rect room);

 private:
  // Both draw off the top of `text`; `gate` is the number of the one that the rank stands at, and `top` is
  // where the text begins, scrolled or not.
  void difference_link(Context& ctx, Rect& text, std::uint64_t gate);
  void counters_and_difference(Context& ctx, Rect& text, float top, std::uint64_t gate);

  float scroll_ = 0, height_ = 0;
  float difference_top_ = 0;  ///< of the scheduler's difference within the scrolled text
  SchedulingAt scheduling_;
  FetchCountersAt counters_;
};

}  // namespace shardscope::gui
