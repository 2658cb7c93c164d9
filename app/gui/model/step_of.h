// Maps a time to a step: one rule for everything that names the step at the cursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "app/analysis/compared_rows.h"
#include "app/gui/model/time_axis.h"
#include "app/store/store_rows.h"

namespace shardscope::gui {

/// Index of the last step that begins at or before `at_ns`: time between two steps belongs to the earlier
/// one. nullopt before the first.
[[nodiscard]] std::optional<std::size_t> step_of(std::span<const store::StepRow> steps, std::int64_t at_ns);
/// Index of the step whose figures are shown at `at_ns`: step_of(), or while that step is running the last
/// completed one before it.
[[nodiscard]] std::optional<std::size_t> measured_step_of(std::span<const store::StepRow> steps,
                                                          std::int64_t at_ns);
/// Position of a time on an axis of step numbers: step 7, with the time until the next step, is from 6.5 to
/// 7.5. nullopt before the first step. A running step ends at `end_ns`, the newest known time.
[[nodiscard]] std::optional<double> position_on_steps(std::span<const store::StepRow> steps,
                                                      std::int64_t at_ns, std::int64_t end_ns);
/// The reverse. nullopt at a step that was not recorded.
[[nodiscard]] std::optional<std::int64_t> time_on_steps(std::span<const store::StepRow> steps,
                                                        double position, std::int64_t end_ns);
/// Numbers of the completed steps that lie within `range` as a whole; nullopt without one.
[[nodiscard]] std::optional<analysis::StepBounds> steps_within(std::span<const store::StepRow> steps,
                                                               TimeRange range);
/// How long the newest `count` completed steps took, or as many as there are; nullopt without one.
[[nodiscard]] std::optional<std::int64_t> newest_steps_ns(std::span<const store::StepRow> steps,
                                                          std::size_t count);

}  // namespace shardscope::gui
