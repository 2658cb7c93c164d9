// The window's state besides the runs themselves: selection, ranges, layout, theme.
// Views change it; the state dump prints it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/arrivals.h"
#include "app/gui/model/break_list.h"
#include "app/gui/model/element_axis.h"
#include "app/gui/model/finder.h"
#include "app/gui/model/layout.h"
#include "app/gui/model/module_in_step.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/notebook.h"
#include "app/gui/model/own_colours.h"
#include "app/gui/model/palette.h"
#include "app/gui/model/places.h"
#include "app/gui/model/plot_scales.h"
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
  std::unique_ptr<Session> run;    ///< the run that panels show; never null once the window is up
  std::unique_ptr<Session> other;  ///< the other run of a comparison, or null
  bool shows_b = false;            ///< `run` is B of the comparison, which was opened second
  bool quit = false;               ///< the user wants the window closed
  /// A run to open in place of `run` or beside it; handled and reset between two frames.
  struct OpenRequest {
    std::string source;  ///< a file, or an endpoint (with "://")
    std::string key_file;
    bool second = false;     ///< open as the second run of a comparison
    bool temporary = false;  ///< deleted when the window closes; not added to the recent files
  };
  std::optional<OpenRequest> open_request;
  /// Of the window: several are distinguished by the names of their runs.
  [[nodiscard]] std::string title() const;
  std::string program_facts;  ///< version and build, for the dialog About
  bool start_page = false;    ///< no run is open: shows recent recordings, open, connect, a sample run
  /// Opens the run. Returns an error message, empty on success. No thread may hold a turn.
  [[nodiscard]] std::string open(const OpenRequest& request);
  /// A and B of a comparison, whichever is shown. B is null without a second run.
  [[nodiscard]] Session& run_a() const { return shows_b ? *other : *run; }
  [[nodiscard]] Session* run_b() const { return shows_b ? run.get() : other.get(); }
  /// "A" or "B"; empty when only one run is open.
  [[nodiscard]] const char* letter_of(const Session& which) const {
    return other == nullptr ? "" : &which == &run_a() ? "A" : "B";
  }
  /// Shows the other run in all panels, at the same place: steps, ranks, and by name what is selected. What
  /// it lacks is as it was when it was shown last, as are the user's order of its ranks and the places to go
  /// back to. Choices in What if begin anew. No effect without a second run.
  void show_other_run();
  void show_run(const Session& which) {
    if (&which == other.get()) show_other_run();
  }
  /// Exchanges the letters and shows the run that is A then.
  void swap_runs();

  /// Requests a new connection to the current run.
  void reconnect() { open_request = OpenRequest{run->source(), run->key_file()}; }

  Selection selection;
  /// Caches for the selection, filled by const functions.
  mutable FamilyCache family;
  mutable RelationCache relations;
  mutable InsideCache inside;
  mutable BarrierTexts barriers;
  mutable ModuleInStepCache module_in_step;
  /// The span under the pointer in the last frame; spans of the same name are highlighted.
  std::optional<store::Span> hovered_span;
  TimeAxis time;
  TimeAxis memory_time;              ///< memory_axis() of linked_axes.h
  std::uint64_t memory_time_of = 0;  ///< Session::number() that it is of
  bool memory_by_hand = false;       ///< zoomed by hand: it does not follow a live run
  bool time_placed = false;          ///< the initial range has been set
  bool follow = true;                ///< live: the range follows the newest event
  bool own_length = false;  ///< zoomed by hand while following: ViewOptions::followed_steps waits until then
  std::optional<std::int64_t> cursor_ns;  ///< the time looked at; empty: the live edge, or the end

  /// Time under the pointer: hover_ns is drawn by every panel with a time axis; the panel
  /// under the pointer sets hover_next_ns, which the workspace copies to hover_ns at the next
  /// frame.
  std::optional<std::int64_t> hover_ns, hover_next_ns;
  std::optional<TimeRange> measured;  ///< the range dragged out with the measuring tool

  std::string layout_name = "Watch";
  std::vector<std::string> own_layouts;  ///< saved by the user, in addition to layout_names()
  ThemeKind theme = ThemeKind::dark;
  OwnColours own_colours;    ///< in place of the theme's
  bool theme_given = false;  ///< set on the command line: overrides the saved theme
  float text_scale = 1;      ///< the user's factor, multiplied by the screen's scale
  PlotScales plot_scales;
  PlaceHistory history;
  Finder find;
  Notebook notes;

  /// Settings that a finding suggests to change, for the What if panel, which consumes them.
  std::optional<std::vector<analysis::Change>> what_if_changes;
  /// Settings and last result of the What if panel, for the state dump.
  struct WhatIfShown {
    std::vector<std::string> values;  ///< in the order of what_if_settings()
    bool playing = false;
    double modelled_ms = 0, changed_ms = 0;  ///< time per step; 0: nothing was simulated
  };
  std::optional<WhatIfShown> what_if;

  TimelineOptions timeline;
  mutable RankGroupings groupings;
  mutable KeptNameCells kept_names;
  mutable RankPaceTables paces;
  bool ranks_placed = false;
  float timeline_scroll = 0;
  std::optional<std::uint32_t> rank_to_show;  ///< the timeline scrolls to this rank
  ElementScale element_scale = ElementScale::linear;
  UnitRange elements;
  std::uint32_t memory_rank = 0;
  ev::MemoryPool memory_pool = ev::MemoryPool::device;
  std::uint32_t stepper_rank = 0;
  BreakList breaks;

  [[nodiscard]] const store::Store& store() const { return run->store(); }
  [[nodiscard]] const NameCells& name_cells() const { return kept_names.of(run->number(), store()); }
  /// Exclusive access of this thread to the stores, for drawing or printing them (Session::turn).
  struct Turn {
    Turns::Turn run;
    std::optional<Turns::Turn> other;
  };
  [[nodiscard]] Turn turn() const {
    return {run->turn(), other ? std::optional(other->turn()) : std::nullopt};
  }
  /// The cursor, or else the last event. In a completed run the end of its last step: later events only free
  /// the program's memory.
  [[nodiscard]] std::int64_t now_ns() const;

  /// Sets the first range and expands the first rank once data has arrived. Call per frame.
  void place_once();
  /// Call after new data: moves the range to the live edge when following.
  void advance();
  /// Starts or stops following the live edge.
  void toggle_follow();
  /// Keeps the newest steps in the range while following (ViewOptions::followed_steps), and follows.
  void follow_newest(std::uint32_t steps);
  /// Scales the range around `anchor_ns`; while following, around the live edge.
  void zoom(double factor, std::int64_t anchor_ns);
  void zoom_by_key(double factor);  ///< around the middle, gliding; while following, around the live edge

  void select_span(store::LaneId lane, const store::Span& span);
  void select_param(std::uint32_t param, std::uint32_t rank);
  void select_module(std::uint32_t module, std::uint32_t rank);
  void select_rank(std::uint32_t rank);
  void select_step(std::uint32_t step);
  /// Expands the rank's lanes and scrolls the timeline to them.
  void show_rank(std::uint32_t rank);
  /// Shows the rank and time of a finding; a finding without either shows the whole run.
  void show_finding(const analysis::Finding& finding);
  void clear_selection() { selection = {}; }
  /// True when the parameter is selected or belongs to the selection.
  [[nodiscard]] bool selected(std::uint32_t param) const;
  [[nodiscard]] bool selected_module(std::uint32_t module) const;
  [[nodiscard]] bool selected_span(store::LaneId lane, const store::Span& span) const;

  void set_layout(const std::string& name);
  /// Shows a step. False when the step is unknown.
  bool go_to_step(std::uint32_t step);
  /// Shows a part of the run: sets the range around it and the cursor into it.
  void go_into(TimeRange part);
  void fit();
  void jump_to(std::int64_t at_ns);
  /// Sets the cursor, which every panel uses; keeps the range.
  void set_now(std::int64_t at_ns);

  // Execution control: live runs receive a command; in a recording the cursor moves between gates.
  void pause();
  void resume();
  void step(StepUnit unit, Direction direction);
  void run_to(RunTo target, Direction direction);
  [[nodiscard]] bool paused() const;
  /// Live: resumes the run until `rule` stops it.
  void go_on(const ev::StopRule& rule);
  /// Work that proceeds without drawing: breakpoints and playback of a recording. No thread may hold a turn.
  /// Returns whether anything changed.
  bool tick(double seconds);
  /// Asks the recorder of a live run to keep the events around the cursor, or the current ones without a
  /// cursor; its answer arrives as a message of the run.
  void keep_moment();

 private:
  /// Of the run that is not shown.
  struct NotShown {
    Selection selection;
    PlaceHistory history;
    bool follow = true;
    RankOrder order = RankOrder::number;
    std::vector<std::uint32_t> own_order;
  };
  NotShown not_shown_;
  /// Resets selection, ranges, measurements and search results of the previous run.
  void forget_run();
};

}  // namespace shardscope::gui
