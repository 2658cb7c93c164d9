// The window's state besides the runs themselves: selection, ranges, layout, theme.
// Views change it; the state dump prints it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/break_list.h"
#include "app/gui/model/element_axis.h"
#include "app/gui/model/finder.h"
#include "app/gui/model/layout.h"
#include "app/gui/model/module_in_step.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/notebook.h"
#include "app/gui/model/palette.h"
#include "app/gui/model/places.h"
#include "app/gui/model/rank_pace_table.h"
#include "app/gui/model/relations.h"
#include "app/gui/model/selection.h"
#include "app/gui/model/session.h"
#include "app/gui/model/span_family.h"
#include "app/gui/model/span_inside.h"
#include "app/gui/model/stepping.h"
#include "app/gui/model/time_axis.h"
#include "app/gui/model/timeline_rows.h"
#include "app/gui/model/view_options.h"

namespace shardscope::gui {

struct AppState {
  std::unique_ptr<Session> run;    ///< never null once the window is up
  std::unique_ptr<Session> other;  ///< second run of a comparison, or null
  bool quit = false;               ///< the user wants the window closed
  /// What is to be shown in place of `run` or beside it. Between two frames it is opened and this is emptied.
  struct OpenRequest {
    std::string source;  ///< a file, or an endpoint (with "://")
    std::string key_file;
    bool second = false;     ///< to be compared with what is shown
    bool temporary = false;  ///< removed with the window: not listed among what was opened before
  };
  std::optional<OpenRequest> open_request;
  bool start_page = false;  ///< nothing has been opened yet: recent recordings, open, connect, a sample
  /// Opens it. Returns what is wrong, or nothing. No thread may hold a turn.
  [[nodiscard]] std::string open(const OpenRequest& request);
  /// Shows the run that it is compared with in its place, and that one as the second. Nothing without one.
  void swap_runs();

  /// Asks for the run that is shown, or was, to be connected to anew.
  void reconnect() { open_request = OpenRequest{run->source(), run->key_file()}; }

  Selection selection;
  /// Caches for what is selected: looked up while the state is only read.
  mutable FamilyCache family;
  mutable RelationCache relations;
  mutable InsideCache inside;
  mutable ModuleInStepCache module_in_step;
  /// The span under the pointer in the last frame: those of its name are marked.
  std::optional<store::Span> hovered_span;
  TimeAxis time;
  bool time_placed = false;               ///< the range has been put somewhere sensible once
  bool follow = true;                     ///< live: the range moves with the run
  std::optional<std::int64_t> cursor_ns;  ///< stepping and looking back; empty: the live edge, the end

  /// Where the pointer is on the axis of time, in whichever panel: every panel with such an axis draws it
  /// (hover_ns) and says where it is when the pointer is over its own (hover_next_ns). The workspace moves
  /// the second to the first at the next frame.
  std::optional<std::int64_t> hover_ns, hover_next_ns;
  std::optional<TimeRange> measured;  ///< what was dragged over to be measured

  std::string layout_name = "Watch";
  std::vector<std::string> own_layouts;  ///< that the user saved, beside layout_names()
  ThemeKind theme = ThemeKind::dark;
  bool theme_given = false;  ///< when it was started: not the one that the last window had
  float text_scale = 1;      ///< the user's, beside what the screen asks for
  PlaceHistory history;
  Finder find;
  Notebook notes;

  /// Settings to be changed in the panel What if: a finding's. The panel takes them.
  std::optional<std::vector<analysis::Change>> what_if_changes;
  /// Of the panel What if, for the dump of the state: what is chosen, and what was played last.
  struct WhatIfShown {
    std::vector<std::string> values;  ///< of what_if_settings()
    bool playing = false;
    double modelled_ms = 0, changed_ms = 0;  ///< of a step; 0: nothing was played
  };
  std::optional<WhatIfShown> what_if;

  TimelineOptions timeline;
  mutable RankGroupings groupings;
  mutable KeptNameCells kept_names;
  mutable RankPaceTables paces;
  bool ranks_placed = false;
  float timeline_scroll = 0;
  std::optional<std::uint32_t> rank_to_show;  ///< the timeline scrolls to it
  ElementScale element_scale = ElementScale::linear;
  UnitRange elements;
  std::uint32_t memory_rank = 0;
  ev::MemoryPool memory_pool = ev::MemoryPool::device;
  std::uint32_t stepper_rank = 0;
  BreakList breaks;

  [[nodiscard]] const store::Store& store() const { return run->store(); }
  [[nodiscard]] const NameCells& name_cells() const { return kept_names.of(run->number(), store()); }
  /// The stores are this thread's while it lasts: for drawing or printing them (Session::turn).
  struct Turn {
    Turns::Turn run;
    std::optional<Turns::Turn> other;
  };
  [[nodiscard]] Turn turn() const {
    return {run->turn(), other ? std::optional(other->turn()) : std::nullopt};
  }
  /// The time that "now" means: the cursor, or the last event. Of a run that is over, the end of its last
  /// step: what follows is the program giving its memory back.
  [[nodiscard]] std::int64_t now_ns() const;

  /// Once data is there: first range, first rank expanded. Call per frame.
  void place_once();
  /// After new data: follow the live edge.
  void advance();
  /// The range moves with the live run from here on, or no longer.
  void toggle_follow();

  void select_span(store::LaneId lane, const store::Span& span);
  void select_param(std::uint32_t param, std::uint32_t rank);
  void select_module(std::uint32_t module, std::uint32_t rank);
  void select_rank(std::uint32_t rank);
  void select_step(std::uint32_t step);
  /// Opens the rank's lanes and scrolls the timeline to them.
  void show_rank(std::uint32_t rank);
  /// Goes to where a finding is: its rank, its time. Of one that has neither: all of the run.
  void show_finding(const analysis::Finding& finding);
  void clear_selection() { selection = {}; }
  /// True when the parameter is, or belongs to, what is selected.
  [[nodiscard]] bool selected(std::uint32_t param) const;
  [[nodiscard]] bool selected_module(std::uint32_t module) const;
  [[nodiscard]] bool selected_span(store::LaneId lane, const store::Span& span) const;

  void set_layout(const std::string& name);
  /// Shows a step: range around it, cursor in it. False when there is no such step.
  bool go_to_step(std::uint32_t step);
  void fit();
  void jump_to(std::int64_t at_ns);
  /// "Now" is there, in every panel; the range stays.
  void set_now(std::int64_t at_ns);

  // Control: live it is sent to the run, in a recording the cursor moves along the gates.
  void pause();
  void resume();
  void step(StepUnit unit, Direction direction);
  void run_to(RunTo target, Direction direction);
  [[nodiscard]] bool paused() const;
  /// Live: the run goes on, up to where the rule says.
  void go_on(const ev::StopRule& rule);
  /// What goes on by itself, whether or not anything is drawn: breakpoints, a recording that is played.
  /// No thread may hold a turn. Returns whether there is anything new to draw.
  bool tick(double seconds);
  /// Asks the recorder of a live run to keep what lies around the cursor, else what happens now; its answer
  /// is a message of the run.
  void keep_moment();

 private:
  /// Another run is shown: what was selected, looked at, measured and found is of the one before.
  void forget_run();
};

}  // namespace shardscope::gui
