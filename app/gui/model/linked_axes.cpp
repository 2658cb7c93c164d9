#include "app/gui/model/linked_axes.h"

#include <algorithm>
#include <iterator>

#include "app/gui/model/app_state.h"
#include "app/gui/model/step_of.h"

namespace shardscope::gui {

TimeAxis& memory_axis(AppState& app) {
  const bool own = !app.timeline.view.memory_linked;
  if (own && app.memory_time_of == app.run->number()) return app.memory_time;
  app.memory_time = app.time;
  app.memory_time.glides = false;  // nothing moves it from frame to frame
  if (app.time.goal() != app.time.range()) app.memory_time.set(app.time.goal(), app.store().end_ns());
  app.memory_by_hand = false;
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

std::optional<TimeRange> time_of(std::span<const store::StepRow> steps, const StepsShown& shown,
                                 std::int64_t run_end) {
  constexpr double kWithin = 1e-6;  // the end of a step is the begin of the next one
  if (steps.empty()) return std::nullopt;
  const double first = steps.front().step - 0.5, last = steps.back().step + 0.5 - kWithin;
  const auto after = [&](double position) {
    return std::ranges::upper_bound(steps, position, {},
                                    [](const store::StepRow& one) { return static_cast<double>(one.step); });
  };
  const auto at = [&](double position) {
    const double inside = std::clamp(position, first, last);
    // Between two recorded steps lies only the time at which the later one begins.
    const auto time = time_on_steps(steps, inside, run_end);
    return time ? *time : after(inside)->begin_ns;
  };
  const TimeRange range{at(shown.begin), at(shown.end)};
  if (range.length() > 0) return range;
  // No recorded step is in the range: the nearest one.
  const double middle = (shown.begin + shown.end) / 2;
  auto nearest = after(middle);
  if (nearest == steps.end() ||
      (nearest != steps.begin() && middle - std::prev(nearest)->step <= nearest->step - middle))
    --nearest;
  return TimeRange{nearest->begin_ns, at(nearest->step + 0.5 - kWithin)};
}

void show_steps(AppState& app, const StepsShown& shown) {
  const std::int64_t run_end = app.store().end_ns();
  const auto range = time_of(app.store().steps(), shown, run_end);
  if (!range) return;
  app.time.set(*range, run_end);
  app.follow = false;
}

}  // namespace shardscope::gui
