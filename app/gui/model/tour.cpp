#include "app/gui/model/tour.h"

namespace shardscope::gui {

std::span<const TourStop> tour_stops() {
  static constexpr TourStop kStops[] = {
      {"top", "The run",
       "The model, its settings, and the figures of the current step. The buttons at the right pause, step "
       "and resume a live run."},
      {"steps", "Every step",
       "One bar per step; its height is the step time. Click a bar to go to the step. The bright range is "
       "what the timeline shows; drag its ends to change it."},
      {"findings", "Findings",
       "What costs time or memory in this run, with evidence and what to try next. Click a finding to go to "
       "where it was seen. Start here."},
      {"timeline", "The timeline",
       "Each rank's streams over time: computation, gathers, reductions; red and hatched where it waits. The "
       "wheel zooms at the pointer, dragging pans, F shows all. A click sets the time that every panel "
       "shows; Shift and dragging measures."},
      {"partition", "Who holds what",
       "Which rank holds which elements of each parameter at that time. Solid: available, hatched: in "
       "flight, outlined: not available. A click selects a parameter in every panel."},
      {"memory", "Memory",
       "Memory use over time by category, its peak, and ZeRO's expression. At the right: live memory by "
       "owner."},
      {"overview", "Rank by rank",
       "Loss, times and where each rank's time went. The rank that is slower than the others is red."},
      {"flame", "Where the time went",
       "The shown range as a flame graph of modules and waits, over all ranks or rank by rank. Click a box "
       "to zoom to it and select it in the timeline."},
      {"find", "Find",
       "Ctrl+F: spans, modules, parameters, steps by their names, with count, percentiles and a histogram. "
       "F3 goes to the next one."},
      {"lecture", "New to ZeRO?",
       "This panel plays one step of stage 3 slowly and says what happens, and why. Key 6 opens its layout."},
      {"top", "Everything else",
       "Ctrl+P finds every command, panel, step, rank and module by its name; F1 lists the keys and what the "
       "colours mean. This tour is in the menu Help."},
  };
  return kStops;
}

}  // namespace shardscope::gui
