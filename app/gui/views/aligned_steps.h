// Part of Compare: the lanes of a step of both runs on one scale, begun at the same place: all of it, each
// phase, or each module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  /// Times from the begin; else, where a time of the scale is of neither run, the parts' names.
  void marks(Context& ctx, const std::vector<AlignedPart>& parts, const TimeScale& scale, const Rect& lanes,
             const Rect& ruler) const;
  /// A stretch of a lane from `x` on.
  static void lane(Context& ctx, const store::Store& store, store::LaneId id, const TimeRange& range, float x,
                   const TimeScale& scale, const Rect& row);

  /// Pairing hundreds of modules is not done in every frame.
  const std::vector<AlignedPart>& parts(const AppState& app, const store::StepRow& a,
                                        const store::StepRow& b);

  AlignBy align_ = AlignBy::step;
  /// What parts_ is of: runs (Session::number()), spans that the step has in each, its times. A live run has
  /// more events with every frame, and an ended step none.
  struct Of {
    std::uint64_t run_a = 0, run_b = 0, spans_a = 0, spans_b = 0;
    TimeRange step_a, step_b;
    AlignBy align = AlignBy::step;
    friend bool operator==(const Of&, const Of&) = default;
  };
  std::optional<Of> of_;
  std::vector<AlignedPart> parts_;
  std::string why_not_;  ///< nothing of parts_ is aligned
};

}  // namespace shardscope::gui
