// The parts of a run that an export can have: the whole run, what the timeline shows, the measured range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/export_job.h"

namespace shardscope::gui {

struct AppState;

struct OfferedPart {
  std::string label;  ///< "What the timeline shows: 12.0 ms to 14.5 ms"
  bool possible = true;
  std::optional<std::pair<std::int64_t, std::int64_t>> range_ns = {};
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps = {};  ///< Kineto: first and last step
};
/// The whole run comes first. Empty for a report, which is of the whole run.
[[nodiscard]] std::vector<OfferedPart> export_parts(const AppState& app, ExportFormat format);

}  // namespace shardscope::gui
