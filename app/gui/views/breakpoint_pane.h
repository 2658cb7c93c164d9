// Part of the Stepper: where to stop, as a list, and the controls that play a recording up to there. What
// looks at the breakpoints goes on without this panel (model/break_list.h).
#pragma once

#include <cstddef>
#include <optional>

#include "app/gui/model/breakpoints.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class BreakpointPane {
 public:
  /// The controls that play a recording, off the top of `room`; a run that goes on is not played and has
  /// none.
  void play(Context& ctx, Rect& room) const;
  /// The list, and a line that adds to it, off the top of `room`: two lines, or `share` of it at most.
  void draw(Context& ctx, Rect& room, float share);

 private:
  void row(AppState& app, std::size_t which, float width, std::optional<std::size_t>& removed) const;
  void add_line(AppState& app);
  /// What the kind needs: a module, a parameter, a step or a threshold. Returns whether it was chosen.
  bool choose(const store::Store& store);

  Breakpoint next_;  ///< that the line adds
};

}  // namespace shardscope::gui
