// Part of Compare: the lanes of one step of both runs at every depth, on a common scale, aligned at the begin
// of the step, phases or modules. The wheel zooms, a drag pans, a click goes to a span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/aligned_lanes.h"
#include "app/gui/model/aligned_phases.h"
#include "app/gui/model/span_pair.h"
#include "app/gui/views/aligned_rows.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class AlignedSteps {
 public:
  /// A step up to the current one has ended in both runs.
  [[nodiscard]] static bool can_draw(const AppState& app);
  void draw(Context& ctx, Rect room);
  /// A menu of the ranks that both runs have, where there are several.
  void rank_menu(Context& ctx, Rect& line);
  /// The rank that is drawn; nullopt: the runs have none in common, and each run's lowest is drawn.
  [[nodiscard]] std::optional<std::uint32_t> rank() const noexcept { return rank_; }

 private:
  /// The title line: how the steps are aligned, and Fit while zoomed.
  void title(Context& ctx, Rect& room, const store::StepRow& step);
  /// Updates parts_ and lanes_ when needed: pairing hundreds of modules is too slow for every frame.
  void prepare(const AppState& app, const store::StepRow& a, const store::StepRow& b);
  /// Zooms and pans. True: a click without a drag.
  bool navigate(Context& ctx, const Rect& area);
  void see(TimeRange range);
  /// Times from the begin; names of the parts where a position of the scale is not a time of either run.
  void marks(Context& ctx, const TimeScale& scale, const Rect& lanes, const Rect& ruler) const;
  void times(Context& ctx, const TimeScale& scale, const Rect& lanes) const;
  void tip_of(Context& ctx, const AlignedHit& hit, const store::StepRow& a, const store::StepRow& b);

  [[nodiscard]] std::int64_t length_ns() const {
    return parts_.empty() ? 0 : parts_.back().at_ns + parts_.back().length_ns;
  }
  [[nodiscard]] TimeRange seen() const { return view_ ? view_->range() : TimeRange{0, length_ns()}; }

  AlignBy align_ = AlignBy::step;
  std::optional<std::uint32_t> rank_;  ///< chosen; nullopt: the lowest of both runs
  std::optional<TimeAxis> view_;       ///< of the common scale, while zoomed
  /// Key of parts_ and lanes_: runs (Session::number()), number of spans of the step in each, its times. The
  /// store revision would change with every frame of a live run, a completed step does not.
  struct Of {
    std::uint64_t run_a = 0, run_b = 0, spans_a = 0, spans_b = 0;
    TimeRange step_a, step_b;
    AlignBy align = AlignBy::step;
    std::optional<std::uint32_t> rank;
    friend bool operator==(const Of&, const Of&) = default;
  };
  std::optional<Of> of_;
  std::vector<AlignedPart> parts_, visible_;
  TimeRange crowded_for_;  ///< visible range for which the crowded lanes were read
  std::vector<AlignedLane> lanes_;
  std::string why_not_;               ///< why no part is aligned
  std::optional<AlignedHit> paired_;  ///< the span of pair_
  SpanPair pair_;
};

}  // namespace shardscope::gui
