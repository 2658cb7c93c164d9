// The whole window: menus, top bar, step ruler, panels by layout, status bar, keys, dialogs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/live_notices.h"
#include "app/gui/model/local_runs.h"
#include "app/gui/model/own_order.h"
#include "app/gui/model/recent.h"
#include "app/gui/model/sample_run.h"
#include "app/gui/model/state_dump.h"
#include "app/gui/model/step_bars.h"
#include "app/gui/views/commands.h"
#include "app/gui/views/dialogs.h"
#include "app/gui/views/docks.h"
#include "app/gui/views/view.h"

namespace shardscope::gui {

class Workspace {
 public:
  /// ImGui window behind the panels: bars and step ruler.
  static constexpr const char* kHostWindow = "Menus, steps and status###workspace";  // Ctrl+Tab lists it
  Workspace() { register_views(registry_); }
  [[nodiscard]] const ViewRegistry& registry() const { return registry_; }
  [[nodiscard]] UiState& ui() { return ui_; }
  /// Adds a run to the menu of recent runs.
  void opened(const AppState::OpenRequest& what);
  /// Stores layouts, recent runs, theme and text size in ImGui's settings file. Needs ImGui's context.
  void keep_in_settings();
  /// Draws the window; empty `panel` or "workspace": all of it, else that panel alone.
  void draw(Context& ctx, std::string_view panel);
  /// Positions of the last draw.
  [[nodiscard]] const std::vector<PlacedForDump>& placed() const { return placed_; }

 private:
  void keys(Context& ctx);
  void bars(Context& ctx, Rect& room);
  void follow_plots(Context& ctx, const StepAxis& before);
  // menus.cpp
  float menu_bar(Context& ctx);
  void menu_items(Context& ctx, Menu menu);
  void layouts_menu(Context& ctx);
  void panels_menu(Context& ctx);
  void recent_menu(Context& ctx);
  // top_bar.cpp
  void top_bar(Context& ctx, Rect rect);
  void controls(Context& ctx, Rect& room);
  void step_menu(Context& ctx, const Rect& anchor);
  void layout_menu(Context& ctx, const Rect& anchor);
  // step_ruler.cpp
  void step_ruler(Context& ctx, Rect rect);
  void ruler_label(Context& ctx, const Rect& label);
  void target_menu(Context& ctx, const StepBar& bar, const Rect& anchor);
  // banner.cpp
  void banner(Context& ctx, Rect& room);
  void notice_strip(Context& ctx, Rect& room);
  void copy_strip(Context& ctx, Rect& room);
  void finding_strip(Context& ctx, Rect& room);
  // status_bar.cpp
  void status_bar(Context& ctx, Rect rect);
  void last_action_text(const store::Store& store);
  // panel_windows.cpp: the panels as ImGui windows in the layout's dock space.
  void panels(Context& ctx);
  void panel_window(Context& ctx, const std::string& name);
  /// `named`: with its title; returns the part of the title line where the panel can be dragged.
  Rect panel(Context& ctx, View& view, const std::vector<Choice>& choices, Rect room, bool named);
  /// Which of two runs the panel shows, a button for the other one; removes its width from `room`.
  static void run_mark(Context& ctx, Rect& room);
  void panel_menu(Context& ctx, const View& view, const Rect& title);
  /// Marks that a panel does not cover the whole run yet; removes its height from `room`.
  void partial_mark(Context& ctx, Rect& room);
  /// Opens the panel named by UiState::show_panel, and the Inspector at the first selection.
  void show_requested_panel(Context& ctx);
  void put_away_inspector(const std::string& layout, bool selected);
  void show_in_front(const std::string& name);
  void move_panel(Context& ctx, const std::string& layout, PanelMove move);
  void focus_beside(const std::string& layout, int by);
  void above(Context& ctx);
  // start_page.cpp
  void start_page(Context& ctx, const Rect& room);
  void status_line(Context& ctx, Rect rect) const;
  // tour.cpp
  void sample(Context& ctx);
  void tour(Context& ctx);

  ViewRegistry registry_;
  Docks docks_;
  UiState ui_;
  Dialogs dialogs_;
  SampleRun sample_;
  Recent recent_;
  LocalRuns local_;  ///< for the start page
  StepBars step_bars_;
  std::vector<PlacedForDump> placed_;
  struct Done {
    std::pair<std::size_t, std::int64_t> of{};  ///< number of messages, and time of the last
    std::string newest, all;
    bool lowered = false;  ///< the level of detail was reduced
  };
  Done done_;
  int brush_owner_ = 0;
  std::optional<std::int64_t> brush_fixed_;  ///< the range's end that stays fixed during a drag
  std::set<std::string> inspector_offered_;  ///< layouts
  LiveNotices notices_;
  store::Losses losses_;
  std::array<std::uint64_t, 2> losses_of_{};  ///< run and revision of its store
  /// By layout: each has separate positions.
  struct InspectorPlace {
    std::optional<bool> selected;  ///< whether there was a selection when it was last shown
    bool put_away = false;
  };
  std::map<std::string, InspectorPlace> inspector_places_;
  std::optional<std::size_t> tour_shown_;
  std::string focus_panel_;    ///< to bring to the front when it is drawn
  std::string focused_panel_;  ///< that had the keyboard last
  std::string focus_again_;    ///< to give the keyboard back to, after a panel came to the front
  bool walks_ = false;         ///< UiState::in_key_area of the last frame
  bool had_popup_ = false;     ///< a menu or dialog was open at the end of the last frame
  /// Values of the settings file, until the first frame applies them.
  struct Kept {
    bool read = false;
    ThemeKind theme = ThemeKind::dark;
    float text_scale = 1;
    ViewOptions view;
    RowChoices rows;
    PlotScales plots;
    OwnColours colours;
    std::vector<std::string> breaks;  ///< BreakList::lines()
  };
  Kept kept_;
  std::uint64_t breaks_revision_ = 0;  ///< revision of the list in kept_
  KeptOrders orders_;
};

/// The sheet of keys, colours and marks.
void draw_help(Context& ctx);

}  // namespace shardscope::gui
