#include "app/gui/model/finding_place.h"

#include <array>
#include <utility>

#include "app/gui/model/step_of.h"

namespace shardscope::gui {

std::string panel_of(const analysis::Finding& finding) {
  if (!finding.panel.empty()) return finding.panel;
  // The first that the title holds; more particular words first.
  static constexpr std::array<std::pair<const char*, const char*>, 15> kPlaces{{
      {"straggler", "timeline"},
      {"fetch trace", "stepper"},
      {"live-parameter", "stepper"},
      {"prefetch", "communication"},
      {"communication", "communication"},
      {"bandwidth", "communication"},
      {"gather", "communication"},
      {"bucket", "communication"},
      {"Model states", "memory"},
      {"memory", "memory"},
      {"overflow", "overview"},
      {"loss", "overview"},
      {"failed", "messages"},
      {"ended", "messages"},
      {"recording", "messages"},
  }};
  for (const auto& [part, panel] : kPlaces) {
    if (finding.title.find(part) != std::string::npos) return panel;
  }
  return "timeline";
}

std::optional<std::uint32_t> step_of(const store::Store& store, const analysis::Finding& finding) {
  if (finding.at_ns <= 0) return std::nullopt;
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
