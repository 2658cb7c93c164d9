#include "app/gui/model/export_parts.h"

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

/// First and last step that a range has a part of; nullopt: none has begun.
std::optional<std::pair<std::uint32_t, std::uint32_t>> steps_in(const AppState& app, const TimeRange& range) {
  std::optional<std::pair<std::uint32_t, std::uint32_t>> out;
  for (const store::StepRow& step : app.store().steps()) {
    const std::int64_t end = step.end_ns == store::kOpen ? app.store().end_ns() : step.end_ns;
    if (end <= range.begin_ns || step.begin_ns >= range.end_ns) continue;
    if (!out) out = {step.step, step.step};
    out->second = step.step;
  }
  return out;
}

OfferedPart part_of_run(const AppState& app, ExportFormat format, const std::string& what,
                        const TimeRange& range) {
  OfferedPart part;
  if (format == ExportFormat::kineto) {
    part.steps = steps_in(app, range);
    part.possible = part.steps.has_value();
    part.label = "Steps in " + what + ": " +
                 (part.steps ? std::to_string(part.steps->first) + " to " + std::to_string(part.steps->second)
                             : std::string("none"));
    return part;
  }
  part.range_ns = {range.begin_ns, range.end_ns};
  part.label = "Only " + what + ": " + timestamp(range.begin_ns, range.length() / 100) + " to " +
               timestamp(range.end_ns, range.length() / 100);
  return part;
}

}  // namespace

std::vector<OfferedPart> export_parts(const AppState& app, ExportFormat format) {
  if (format == ExportFormat::report) return {};
  std::vector<OfferedPart> parts(1);
  parts.front().label = "The whole run";
  parts.push_back(part_of_run(app, format, "what the timeline shows", app.time.range()));
  if (app.measured) parts.push_back(part_of_run(app, format, "the measured range", *app.measured));
  return parts;
}

}  // namespace shardscope::gui
