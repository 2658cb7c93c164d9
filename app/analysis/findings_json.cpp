// `findings --json`: the fields of metrics.md section 3. Unknown values are null.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/analysis/advice.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/summary.h"
#include "app/store/names.h"

namespace shardscope::analysis {

namespace {

const char* name_of(BytesOf of) { return of == BytesOf::memory ? "memory" : "communication"; }

nlohmann::json changes_json(const std::vector<Change>& changes) {
  nlohmann::json out = nlohmann::json::array();
  for (const Change& change : changes) out.push_back({{"key", change.key}, {"value", change.value}});
  return out;
}

/// Figures are null where nothing is predicted; `refused` is then the reason, else null.
nlohmann::json option_json(const TriedOption& option) {
  const PlayOutcome& one = option.outcome;
  const bool played = one.refused.empty();
  const auto bytes = [&](std::int64_t value) {
    return played && value > 0 ? nlohmann::json(value) : nlohmann::json(nullptr);
  };
  return {{"changes", changes_json(option.changes)},
          {"advised", option.advised},
          {"step_ms", played ? nlohmann::json(one.step_ms) : nlohmann::json(nullptr)},
          {"peak_bytes", bytes(one.peak_bytes)},
          {"held_bytes", bytes(one.held_bytes)},
          {"refused", played ? nlohmann::json(nullptr) : nlohmann::json(one.refused)}};
}

/// `tried` may be null: then there are no options.
std::string findings_text_of(const std::vector<Finding>& findings, bool simulated, const TriedAdvice* tried) {
  nlohmann::json out = nlohmann::json::array();
  const auto maybe = [](const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  for (const Finding& finding : findings) {
    out.push_back({{"severity", store::name_of(finding.severity)},
                   {"title", finding.title},
                   {"evidence", finding.evidence},
                   {"next_step", finding.next_step},
                   {"id", finding.id},
                   {"page", finding.page},
                   {"panel", finding.panel},
                   {"cost_ms", maybe(finding.cost_ms)},
                   {"cost_once_ms", maybe(finding.cost_once_ms)},
                   {"cost_bytes", maybe(finding.cost_bytes)},
                   {"cost_bytes_of",
                    finding.cost_bytes ? nlohmann::json(name_of(finding.bytes_of)) : nlohmann::json(nullptr)},
                   {"changes", changes_json(finding.changes)},
                   {"gain_ms", maybe(finding.gain_ms)},
                   {"gain_bytes", maybe(finding.gain_bytes)},
                   {"gain_basis", finding.gain_basis},
                   {"explains", finding.explains},
                   {"until_ns", finding.until_ns},
                   {"simulated", simulated},
                   {"at_ns", finding.at_ns},
                   {"rank", finding.rank == instrumentation::kNoId ? nlohmann::json(nullptr)
                                                                   : nlohmann::json(finding.rank)}});
    if (tried == nullptr) continue;
    nlohmann::json& options = out.back()["options"] = nlohmann::json::array();
    for (const TriedOption& option : tried->options)
      if (option.finding == finding.id) options.push_back(option_json(option));
  }
  return to_text(out, 2) + "\n";
}

}  // namespace

std::string findings_json(const std::vector<Finding>& findings, bool simulated) {
  return findings_text_of(findings, simulated, nullptr);
}

std::string findings_json(const std::vector<Finding>& findings, bool simulated, const TriedAdvice& tried) {
  return findings_text_of(findings, simulated, &tried);
}

}  // namespace shardscope::analysis
