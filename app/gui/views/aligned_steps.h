// Part of Compare: the lanes of a step of both runs, at every depth, on one scale, begun at the same place:
// all of it, each phase, or each module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/aligned_lanes.h"
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
  void marks(Context& ctx, const TimeScale& scale, const Rect& lanes, const Rect& ruler) const;
  /// The rows of a run, each of height `h`: 0 is A.
  void lanes(Context& ctx, std::size_t run, std::span<const std::size_t> shown, const TimeScale& scale,
             Rect room, float h) const;
  static void boxes(Context& ctx, std::size_t run, const AlignedLane& lane, const TimeScale& scale,
                    const Rect& row);
  /// The busy share of a stretch of a lane, from `x` on.
  static void density(Context& ctx, const store::Store& store, store::LaneId id, std::uint8_t depth,
                      const TimeRange& range, float x, const TimeScale& scale, const Rect& row);

  /// Pairing hundreds of modules and moving thousands of spans is not done in every frame.
  void prepare(const AppState& app, const store::StepRow& a, const store::StepRow& b);

  AlignBy align_ = AlignBy::step;
  /// What parts_ and lanes_ are of: runs (Session::number()), spans that the step has in each, its times. A
  /// live run has more events with every frame, and an ended step none.
  struct Of {
    std::uint64_t run_a = 0, run_b = 0, spans_a = 0, spans_b = 0;
    TimeRange step_a, step_b;
    AlignBy align = AlignBy::step;
    friend bool operator==(const Of&, const Of&) = default;
  };
  std::optional<Of> of_;
  std::vector<AlignedPart> parts_;
  std::vector<AlignedLane> lanes_;
  std::string why_not_;  ///< nothing of parts_ is aligned
};

}  // namespace shardscope::gui
