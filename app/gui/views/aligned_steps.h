// Part of Compare: the lanes of one step of both runs at every depth, on a common scale, aligned at the begin
// of the step, phases or modules.
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
  /// The current step has ended in both runs.
  [[nodiscard]] static bool can_draw(const AppState& app);
  void draw(Context& ctx, Rect room);

 private:
  /// Times from the begin; names of the parts where a position of the scale is not a time of either run.
  void marks(Context& ctx, const TimeScale& scale, const Rect& lanes, const Rect& ruler) const;
  /// Draws the rows of run 0 (A) or 1 (B), each of height `h`.
  void lanes(Context& ctx, std::size_t run, std::span<const std::size_t> shown, const TimeScale& scale,
             Rect room, float h) const;
  static void boxes(Context& ctx, std::size_t run, const AlignedLane& lane, const TimeScale& scale,
                    const Rect& row);
  /// Draws the busy share of a lane in `range`, from `x` on.
  static void density(Context& ctx, const store::Store& store, store::LaneId id, std::uint8_t depth,
                      const TimeRange& range, float x, const TimeScale& scale, const Rect& row);

  /// Updates parts_ and lanes_ when needed: pairing hundreds of modules is too slow for every frame.
  void prepare(const AppState& app, const store::StepRow& a, const store::StepRow& b);

  AlignBy align_ = AlignBy::step;
  /// Key of parts_ and lanes_: runs (Session::number()), number of spans of the step in each, its times. The
  /// store revision would change with every frame of a live run, a completed step does not.
  struct Of {
    std::uint64_t run_a = 0, run_b = 0, spans_a = 0, spans_b = 0;
    TimeRange step_a, step_b;
    AlignBy align = AlignBy::step;
    friend bool operator==(const Of&, const Of&) = default;
  };
  std::optional<Of> of_;
  std::vector<AlignedPart> parts_;
  std::vector<AlignedLane> lanes_;
  std::string why_not_;  ///< why no part is aligned
};

}  // namespace shardscope::gui
