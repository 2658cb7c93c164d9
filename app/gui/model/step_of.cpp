#include "app/gui/model/step_of.h"

#include <algorithm>

namespace shardscope::gui {

std::optional<std::size_t> step_of(std::span<const store::StepRow> steps, std::int64_t at_ns) {
  const auto after = std::partition_point(steps.begin(), steps.end(),
                                          [&](const store::StepRow& step) { return step.begin_ns <= at_ns; });
  if (after == steps.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - steps.begin()) - 1;
}

std::optional<std::size_t> measured_step_of(std::span<const store::StepRow> steps, std::int64_t at_ns) {
  const std::optional<std::size_t> at = step_of(steps, at_ns);
  for (std::size_t i = at ? *at + 1 : 0; i-- > 0;) {
    if (steps[i].end_ns != store::kOpen) return i;
  }
  return std::nullopt;
}

std::optional<std::int64_t> newest_steps_ns(std::span<const store::StepRow> steps, std::size_t count) {
  while (!steps.empty() && steps.back().end_ns == store::kOpen) steps = steps.first(steps.size() - 1);
  if (steps.empty() || count == 0) return std::nullopt;
  return steps.back().end_ns - steps[steps.size() - std::min(count, steps.size())].begin_ns;
}

}  // namespace shardscope::gui
