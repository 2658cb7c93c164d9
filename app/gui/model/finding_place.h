// Where to look at a finding: the panel and the step.
#pragma once

#include <optional>
#include <string>

#include "app/analysis/summary.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// The panel named by the finding, else the Timeline.
[[nodiscard]] std::string panel_of(const analysis::Finding& finding);

/// The step at the finding's time; nullopt for findings about the whole run.
[[nodiscard]] std::optional<std::uint32_t> step_of(const store::Store& store,
                                                   const analysis::Finding& finding);

/// "error", "warning", "note".
[[nodiscard]] const char* severity_word(instrumentation::Severity severity) noexcept;

}  // namespace shardscope::gui
