// Which step a time belongs to: one rule for everything that names a step at the cursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "app/store/store_rows.h"

namespace shardscope::gui {

/// Index of the step that began last at or before `at_ns`: what lies between two steps belongs to the one
/// before. Nothing before the first.
[[nodiscard]] std::optional<std::size_t> step_of(std::span<const store::StepRow> steps, std::int64_t at_ns);
/// Index of the step whose figures are shown at `at_ns`: step_of(), or while that still runs the last one
/// before it that has ended.
[[nodiscard]] std::optional<std::size_t> measured_step_of(std::span<const store::StepRow> steps,
                                                          std::int64_t at_ns);

}  // namespace shardscope::gui
