// Axes of time that share the range of the timeline: those of the memory curve and of plots of values per
// step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "app/gui/model/time_axis.h"
#include "app/store/store_rows.h"

namespace shardscope::gui {

struct AppState;

/// The axis of the memory curve: the timeline's, or one of its own, which begins with the timeline's range.
[[nodiscard]] TimeAxis& memory_axis(AppState& app);

/// Range of an axis of step numbers; step 7 is from 6.5 to 7.5.
struct StepsShown {
  static constexpr double kFewest = 2;  ///< as in the plots: a shorter range is widened around its middle
  double begin = 0, end = 1;
};
/// That of the timeline's range; nullopt without a step, or if the axes are not linked.
[[nodiscard]] std::optional<StepsShown> linked_steps(const AppState& app);
/// The time of these steps. Where none was recorded: of the nearest one; nullopt without any.
[[nodiscard]] std::optional<TimeRange> time_of(std::span<const store::StepRow> steps, const StepsShown& shown,
                                               std::int64_t run_end);
/// Shows these steps in the timeline, as far as they were recorded.
void show_steps(AppState& app, const StepsShown& steps);

}  // namespace shardscope::gui
