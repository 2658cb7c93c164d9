// The timeline by keyboard: a row of it has the cursor; arrows go along the rows and from span to span.
#pragma once

#include <optional>

#include "app/gui/model/row_walk.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class TimelineKeys {
 public:
  /// Call after the rows are drawn. `top`: y of the first row; `gutter`: the names of the rows beside the
  /// lanes.
  void look(Context& ctx, const TimelineRows& rows, const Rect& room, const Rect& lanes, float gutter,
            float top, const TimeScale& scale);

 private:
  void across(Context& ctx, const TimelineRow& row, Toward toward);
  static void aim_tip(Context& ctx, const TimelineRow& row, const Rect& place, const TimeScale& scale);
  void open(Context& ctx, const TimelineRow& row, const Rect& place, const TimeScale& scale) const;

  std::optional<TimelineRow> at_;
  std::optional<Toward> goes_on_;  ///< the span is searched in further frames
};

}  // namespace shardscope::gui
