// Part of Compare: the lanes of a step of both runs on one scale, begun at the same place: all of it, or each
// phase.
#pragma once

#include <vector>

#include "app/gui/model/aligned_phases.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class AlignedSteps {
 public:
  /// The step that is looked at has ended in both runs.
  [[nodiscard]] static bool can_draw(const AppState& app);
  void draw(Context& ctx, Rect room);

 private:
  /// Times from the begin; phase by phase, where a time of the scale is of neither run, the phases' names.
  void marks(Context& ctx, const std::vector<AlignedPart>& parts, const TimeScale& scale, const Rect& lanes,
             const Rect& ruler) const;
  /// A stretch of a lane from `x` on.
  static void lane(Context& ctx, const store::Store& store, store::LaneId id, const TimeRange& range, float x,
                   const TimeScale& scale, const Rect& row);

  AlignBy align_ = AlignBy::step;
};

}  // namespace shardscope::gui
