#include "app/gui/model/finding_place.h"

#include "app/gui/model/step_of.h"

namespace shardscope::gui {

std::string panel_of(const analysis::Finding& finding) {
  return finding.panel.empty() ? "timeline" : finding.panel;
}

std::optional<std::uint32_t> step_of(const store::Store& store, const analysis::Finding& finding) {
  if (!finding.placed()) return std::nullopt;
  const auto at = step_of(store.steps(), finding.at_ns);
  return at ? std::optional(store.steps()[*at].step) : std::nullopt;
}

const char* severity_word(instrumentation::Severity severity) noexcept {
  switch (severity) {
    case instrumentation::Severity::info:
      return "note";
    case instrumentation::Severity::warning:
      return "warning";
    case instrumentation::Severity::error:
      return "error";
  }
  return "";
}

}  // namespace shardscope::gui
