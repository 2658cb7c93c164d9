#include "app/gui/model/step_of.h"

#include <algorithm>
#include <cmath>

namespace shardscope::gui {
namespace {

/// Of the step and of the time until the next one, at least 1 ns.
std::int64_t step_length(std::span<const store::StepRow> steps, std::size_t index, std::int64_t end_ns) {
  const store::StepRow& step = steps[index];
  const std::int64_t end = index + 1 < steps.size()      ? steps[index + 1].begin_ns
                           : step.end_ns != store::kOpen ? step.end_ns
                                                         : end_ns;
  return std::max<std::int64_t>(1, end - step.begin_ns);
}

}  // namespace

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

std::optional<double> position_on_steps(std::span<const store::StepRow> steps, std::int64_t at_ns,
                                        std::int64_t end_ns) {
  const auto at = step_of(steps, at_ns);
  if (!at) return std::nullopt;
  const auto length = static_cast<double>(step_length(steps, *at, end_ns));
  return steps[*at].step - 0.5 + std::min(1.0, static_cast<double>(at_ns - steps[*at].begin_ns) / length);
}

std::optional<std::int64_t> time_on_steps(std::span<const store::StepRow> steps, double position,
                                          std::int64_t end_ns) {
  const double number = std::floor(position + 0.5);
  const auto step = std::ranges::lower_bound(
      steps, number, {}, [](const store::StepRow& one) { return static_cast<double>(one.step); });
  if (step == steps.end() || static_cast<double>(step->step) != number) return std::nullopt;
  const std::int64_t length = step_length(steps, static_cast<std::size_t>(step - steps.begin()), end_ns);
  return step->begin_ns + std::llround((position + 0.5 - number) * static_cast<double>(length));
}

std::optional<analysis::StepBounds> steps_within(std::span<const store::StepRow> steps, TimeRange range) {
  std::optional<analysis::StepBounds> out;
  for (const store::StepRow& step : steps) {
    if (step.begin_ns < range.begin_ns || step.end_ns == store::kOpen || step.end_ns > range.end_ns) continue;
    if (!out) out = analysis::StepBounds{step.step, step.step};
    out->last = step.step;
  }
  return out;
}

std::optional<std::int64_t> newest_steps_ns(std::span<const store::StepRow> steps, std::size_t count) {
  while (!steps.empty() && steps.back().end_ns == store::kOpen) steps = steps.first(steps.size() - 1);
  if (steps.empty() || count == 0) return std::nullopt;
  return steps.back().end_ns - steps[steps.size() - std::min(count, steps.size())].begin_ns;
}

}  // namespace shardscope::gui
