// Frames of the timeline: the micro-steps in view as a strip above the lanes, or the steps where those would
// be too narrow.
#pragma once

#include <vector>

#include "app/gui/model/micro_steps.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class TimelineFrames {
 public:
  /// Draws the strip at the top of `room` and removes its height. Runs whose steps have one micro-step have
  /// no strip: their steps are a lane.
  void strip(Context& ctx, Rect& room, float gutter, const TimeScale& scale);
  /// The begins of the micro-steps of the strip, across `lanes`.
  void lines(Context& ctx, const Rect& lanes, const TimeScale& scale) const;

 private:
  /// `at_cursor`: it has the time that every panel shows.
  static void box(Context& ctx, const StepFrame& frame, const Rect& place, bool at_cursor);
  std::vector<StepFrame> frames_;
};

}  // namespace shardscope::gui
