// The whole window: top bar, step ruler, panels by layout, status bar, keys.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/state_dump.h"
#include "app/gui/views/docks.h"
#include "app/gui/views/view.h"

namespace shardscope::gui {

class Workspace {
 public:
  Workspace() { register_views(registry_); }
  [[nodiscard]] const ViewRegistry& registry() const { return registry_; }
  [[nodiscard]] UiState& ui() { return ui_; }
  /// ImGui's settings file keeps the layouts. Needs its context.
  void keep_in_settings() { docks_.keep_in_settings(); }
  /// Draws the window; `panel` empty or "workspace" for all of it, else that panel alone.
  void draw(Context& ctx, std::string_view panel);
  /// Where the last draw put things.
  [[nodiscard]] const std::vector<PlacedForDump>& placed() const { return placed_; }

 private:
  void keys(Context& ctx);
  void top_bar(Context& ctx, Rect rect);
  void controls(Context& ctx, Rect& rect);
  void step_ruler(Context& ctx, Rect rect);
  void status_bar(Context& ctx, Rect rect);
  void what_was_done(const store::Store& store);
  void banner(Context& ctx, Rect& room);
  /// The panels as windows of ImGui in the layout's dock space.
  void panels(Context& ctx);
  void above(Context& ctx);
  void panel_window(Context& ctx, const std::string& name);
  /// `named`: its title stands there; the room of that title, where it can be taken hold of, is returned.
  Rect panel(Context& ctx, View& view, Rect room, bool named);
  void panel_menu(Context& ctx, const View& view, const Rect& title);
  void layout_menu(Context& ctx, const Rect& anchor);
  /// Says that what a panel shows is not of the whole run yet; takes its room off.
  void partial_mark(Context& ctx, Rect& room);
  void help(Context& ctx);
  void step_menu(Context& ctx, const Rect& anchor);

  ViewRegistry registry_;
  Docks docks_;
  UiState ui_;
  std::vector<PlacedForDump> placed_;
  struct Done {
    std::pair<std::size_t, std::int64_t> of{};  ///< messages, and when the last one was
    std::string newest, all;
    bool lowered = false;  ///< the detail
  };
  Done done_;
  int brush_owner_ = 0;
  bool help_shown_ = false;  ///< in the frame before: the click that opened it must not close it
};

}  // namespace shardscope::gui
