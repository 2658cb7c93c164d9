#include "app/gui/model/tour.h"

namespace shardscope::gui {

std::span<const TourStop> tour_stops() {
  static constexpr TourStop kStops[] = {
      {"top", "The run",
       "What is trained and how, and the figures of the step that is looked at. A live run is paused, "
       "stepped and resumed at the right."},
      {"steps", "Every step",
       "A bar a step: as high as it took long. A click goes to a step; what is bright is what the timeline "
       "shows, and its ends can be dragged."},
      {"findings", "What stands out",
       "What costs time or memory in this run, with the evidence, and what to try next. A click goes to "
       "where it was seen. Begin here."},
      {"timeline", "The timeline",
       "Each rank's streams over time: computation, gathers, reductions; red and hatched where it waits. The "
       "wheel zooms at the pointer, dragging pans, F shows all. A click sets the time that every panel "
       "shows; dragging with Shift measures."},
      {"partition", "Who holds what",
       "Which rank holds which elements of each parameter at that time: solid where it is there, hatched on "
       "its way, an outline where it is not. A click selects a parameter in every panel."},
      {"memory", "Memory",
       "What it went to over time, its peak, and ZeRO's expression beside it. At the right who owned what "
       "was alive."},
      {"overview", "Rank by rank",
       "Loss, times and where each rank's time went. The rank that is slower than the others is red."},
      {"flame", "Where the time went",
       "The range that is shown as a tree of modules and waits, over the ranks or rank by rank. A click "
       "takes a box alone and selects it in the timeline."},
      {"find", "Find",
       "Ctrl+F: spans, modules, parameters, steps by their names, with count, percentiles and a histogram. "
       "F3 goes to the next one."},
      {"lecture", "New to ZeRO?",
       "This panel plays one step of stage 3 slowly and says what happens, and why. Key 6 is a layout for "
       "it."},
      {"top", "And the rest",
       "Ctrl+P finds every command, panel, step, rank and module by its name; F1 lists the keys and what the "
       "colours mean. This tour is in the menu Help."},
  };
  return kStops;
}

}  // namespace shardscope::gui
