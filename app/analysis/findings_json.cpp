// `findings --json`: the fields of metrics.md section 3. Unknown values are null.
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/summary.h"
#include "app/store/names.h"

namespace shardscope::analysis {

namespace {

const char* name_of(BytesOf of) { return of == BytesOf::memory ? "memory" : "communication"; }

}  // namespace

std::string findings_json(const std::vector<Finding>& findings, bool simulated) {
  nlohmann::json out = nlohmann::json::array();
  const auto maybe = [](const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  for (const Finding& finding : findings) {
    nlohmann::json changes = nlohmann::json::array();
    for (const Change& change : finding.changes)
      changes.push_back({{"key", change.key}, {"value", change.value}});
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
                   {"changes", changes},
                   {"gain_ms", maybe(finding.gain_ms)},
                   {"gain_bytes", maybe(finding.gain_bytes)},
                   {"gain_basis", finding.gain_basis},
                   {"explains", finding.explains},
                   {"until_ns", finding.until_ns},
                   {"simulated", simulated},
                   {"at_ns", finding.at_ns},
                   {"rank", finding.rank == instrumentation::kNoId ? nlohmann::json(nullptr)
                                                                   : nlohmann::json(finding.rank)}});
  }
  return to_text(out, 2) + "\n";
}

}  // namespace shardscope::analysis
