// A panel. Views are registered and named by layouts; no code calls a particular view.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "app/gui/views/choices.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

/// The run that a panel shows while two are compared.
enum class RunsOf : std::uint8_t {
  shown,  ///< AppState::run: its title line names it
  both,   ///< A and B beside one another, named in the panel
  none,
};

class View {
 public:
  View() = default;
  virtual ~View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  [[nodiscard]] virtual std::string_view name() const = 0;   ///< id, as in --panel
  [[nodiscard]] virtual std::string_view title() const = 0;  ///< display name
  /// Whether it shows results of the analysis: then its title marks them as partial until that is complete.
  [[nodiscard]] virtual bool analysed() const { return false; }
  [[nodiscard]] virtual RunsOf runs() const { return RunsOf::shown; }
  /// Called each frame, also while the panel is hidden.
  virtual void update(Context& ctx);
  /// Its options, most important first: shown in its title line, left of header(), and in the palette. Must
  /// not have side effects: called any number of times.
  [[nodiscard]] virtual std::vector<Choice> choices(const AppState& app);
  /// Draws other controls at the right of the title line; removes their width from `room`.
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

/// Registers every panel; the only list of them (register_views.cpp).
void register_views(ViewRegistry& registry);

}  // namespace shardscope::gui
