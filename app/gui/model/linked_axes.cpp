#include "app/gui/model/linked_axes.h"

#include <algorithm>

#include "app/gui/model/app_state.h"
#include "app/gui/model/step_of.h"

namespace shardscope::gui {

TimeAxis& memory_axis(AppState& app) {
  const bool own = !app.timeline.view.memory_linked;
  if (own && app.memory_time_of == app.run->number()) return app.memory_time;
  app.memory_time = app.time;
  app.memory_time_of = app.time_placed ? app.run->number() : 0;
  return own ? app.memory_time : app.time;
}

std::optional<StepsShown> linked_steps(const AppState& app) {
  const auto steps = app.store().steps();
  if (!app.timeline.view.steps_linked || steps.empty()) return std::nullopt;
  const std::int64_t run_end = app.store().end_ns();
  const TimeRange range = app.time.range();
  StepsShown shown;
  shown.begin = position_on_steps(steps, range.begin_ns, run_end).value_or(steps.front().step - 0.5);
  shown.end = position_on_steps(steps, range.end_ns, run_end).value_or(shown.begin);
  if (const double missing = StepsShown::kFewest - (shown.end - shown.begin); missing > 0) {
    shown.begin -= missing / 2;
    shown.end += missing / 2;
  }
  return shown;
}

void show_steps(AppState& app, const StepsShown& shown) {
  const auto steps = app.store().steps();
  if (steps.empty()) return;
  const std::int64_t run_end = app.store().end_ns();
  const double first = steps.front().step - 0.5, last = steps.back().step + 0.5;
  const auto at = [&](double position) {
    return time_on_steps(steps, std::clamp(position, first, last - 1e-6), run_end);
  };
  const auto begin = at(shown.begin), end = at(shown.end);
  if (!begin || !end || *end <= *begin) return;
  app.time.set({*begin, *end}, run_end);
  app.follow = false;
}

}  // namespace shardscope::gui
