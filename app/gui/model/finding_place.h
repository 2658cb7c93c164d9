// Where a finding is looked at: which panel shows what it speaks of, and at which step.
#pragma once

#include <optional>
#include <string>

#include "app/analysis/summary.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// The panel that shows what the finding is about: its own, else the Timeline.
[[nodiscard]] std::string panel_of(const analysis::Finding& finding);

/// The finding's step: that at its time; nothing for one that is of the whole run.
[[nodiscard]] std::optional<std::uint32_t> step_of(const store::Store& store,
                                                   const analysis::Finding& finding);

/// "error", "warning", "note".
[[nodiscard]] const char* severity_word(instrumentation::Severity severity) noexcept;

}  // namespace shardscope::gui
