// Part of the Stepper: the list of breakpoints, and the playback controls of a recording. Breakpoints are
// evaluated independently of this panel (model/break_list.h).
#pragma once

#include <cstddef>
#include <optional>

#include "app/gui/model/breakpoints.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class BreakpointPane {
 public:
  /// Draws the playback controls at the top of `room` and removes their height; nothing for a live
  /// run.
  void play(Context& ctx, Rect& room) const;
  /// Draws the list and a line that adds to it, at the top of `room`: two lines, or at most `share` of it.
  void draw(Context& ctx, Rect& room, float share);

 private:
  void row(AppState& app, std::size_t which, float width, std::optional<std::size_t>& removed) const;
  void add_line(AppState& app);
  /// Input for the kind: a module, parameter, step or threshold. Returns whether it is complete.
  bool choose(const store::Store& store);

  Breakpoint next_;  ///< the breakpoint that the line adds
};

}  // namespace shardscope::gui
