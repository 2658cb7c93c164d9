// The whole window: menus, top bar, step ruler, panels by layout, status bar, keys, dialogs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  /// ImGui's window behind the panels: bars and step ruler.
  static constexpr const char* kHostWindow = "Menus, steps and status###workspace";  // Ctrl+Tab lists it
  Workspace() { register_views(registry_); }
  [[nodiscard]] const ViewRegistry& registry() const { return registry_; }
  [[nodiscard]] UiState& ui() { return ui_; }
  /// Notes what was opened, for the menu of what was opened before.
  void opened(const AppState::OpenRequest& what);
  /// ImGui's settings file keeps layouts, what was opened, theme and size of text. Needs its context.
  void keep_in_settings();
  /// Draws the window; `panel` empty or "workspace" for all of it, else that panel alone.
  void draw(Context& ctx, std::string_view panel);
  /// Where the last draw put things.
  [[nodiscard]] const std::vector<PlacedForDump>& placed() const { return placed_; }

 private:
  void keys(Context& ctx);
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
  void target_menu(Context& ctx, const StepBar& bar);
  // banner.cpp
  void banner(Context& ctx, Rect& room);
  void copy_strip(Context& ctx, Rect& room);
  void finding_strip(Context& ctx, Rect& room);
  // status_bar.cpp
  void status_bar(Context& ctx, Rect rect);
  void last_action_text(const store::Store& store);
  // panel_windows.cpp: the panels as windows of ImGui in the layout's dock space.
  void panels(Context& ctx);
  void panel_window(Context& ctx, const std::string& name);
  /// `named`: its title stands there; the room of that title, where it can be taken hold of, is returned.
  Rect panel(Context& ctx, View& view, const std::vector<Choice>& choices, Rect room, bool named);
  void panel_menu(Context& ctx, const View& view, const Rect& title);
  /// Says that what a panel shows is not of the whole run yet; takes its room off.
  void partial_mark(Context& ctx, Rect& room);
  /// Opens the panel that UiState::show_panel names, and the Inspector at the first selection.
  void show_requested_panel(Context& ctx);
  void put_away_inspector(const std::string& layout, bool selected);
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
    std::pair<std::size_t, std::int64_t> of{};  ///< messages, and when the last one was
    std::string newest, all;
    bool lowered = false;  ///< the detail
  };
  Done done_;
  int brush_owner_ = 0;
  std::optional<std::int64_t> brush_fixed_;  ///< the end of the range that stays while the other is dragged
  bool inspector_offered_ = false;
  /// By layout: each has its own places.
  struct InspectorPlace {
    std::optional<bool> selected;  ///< whether anything was when it was shown last
    bool put_away = false;
  };
  std::map<std::string, InspectorPlace> inspector_places_;
  std::optional<std::size_t> tour_shown_;
  std::string focus_panel_;  ///< to be brought to the front when it is drawn
  /// Values of the settings file, until the first frame takes them over.
  struct Kept {
    bool read = false;
    ThemeKind theme = ThemeKind::dark;
    float text_scale = 1;
    ViewOptions view;
    std::vector<std::string> breaks;  ///< BreakList::lines()
  };
  Kept kept_;
  std::uint64_t breaks_revision_ = 0;  ///< that kept_ is of
  KeptOrders orders_;
};

/// The sheet of keys, colours and marks.
void draw_help(Context& ctx);

}  // namespace shardscope::gui
