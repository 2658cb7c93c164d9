// A panel. Views are registered, and layouts name them; nothing calls a particular view.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "app/gui/views/choices.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class View {
 public:
  View() = default;
  virtual ~View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  [[nodiscard]] virtual std::string_view name() const = 0;   ///< as in --panel
  [[nodiscard]] virtual std::string_view title() const = 0;  ///< as the user reads it
  /// Whether it shows anything that is analysed: then its title says so while that is partial.
  [[nodiscard]] virtual bool analysed() const { return false; }
  /// Called each frame, whether or not the panel is drawn: for what goes on by itself.
  virtual void update(Context& ctx);
  /// What it can show, the most wanted first: in its title line, left of what header() draws, and in the
  /// palette. Asked for as often as is needed: it changes nothing.
  [[nodiscard]] virtual std::vector<Choice> choices(const AppState& app);
  /// Other controls at the right of the title line; takes what it needs off `room`.
  virtual void header(Context& ctx, Rect& room);
  virtual void draw(Context& ctx, Rect room) = 0;
};

class ViewRegistry {
 public:
  void add(std::unique_ptr<View> view) { views_.push_back(std::move(view)); }
  [[nodiscard]] View* find(std::string_view name) const;
  [[nodiscard]] const std::vector<std::unique_ptr<View>>& all() const { return views_; }

 private:
  std::vector<std::unique_ptr<View>> views_;
};

/// Every panel of the dashboard; the one list of them (register_views.cpp).
void register_views(ViewRegistry& registry);

}  // namespace shardscope::gui
