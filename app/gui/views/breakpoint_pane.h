// Part of the Stepper: where to stop, as a list, and what runs up to there: a recording that is played, a run
// that goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/breakpoints.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// All of it is of the rank that the Stepper shows.
class BreakpointPane {
 public:
  /// Plays a recording: the cursor moves on, at breakpoints it stops. Draws the line of its controls off the
  /// top of `room`; a run that goes on is not played and has none.
  void play(Context& ctx, Rect& room);
  /// Live: conditions are looked at as far as events have come; the run holds at its next gate.
  void watch_live(AppState& app);
  /// The list, and a line that adds to it, off the top of `room`.
  void draw(Context& ctx, Rect& room);

 private:
  void to_next_hit(AppState& app);
  void add_line(const store::Store& store);
  /// What the kind needs: a module, a parameter, a step or a threshold. Returns whether it was chosen.
  bool choose(const store::Store& store);

  Playback playback_;
  double last_seconds_ = 0;  ///< of the frame before
  std::vector<Breakpoint> breakpoints_;
  Breakpoint next_;                 ///< that the line adds
  std::optional<std::size_t> hit_;  ///< breakpoint at which it stopped
  bool none_left_ = false;
  std::int64_t watched_ns_ = 0;  ///< live: conditions have been looked at up to there
};

}  // namespace shardscope::gui
