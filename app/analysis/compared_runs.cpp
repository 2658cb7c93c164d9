#include "app/analysis/compared_runs.h"

#include <algorithm>
#include <cstdint>

#include "app/analysis/foreign_json.h"

namespace shardscope::analysis {

std::vector<std::string> missing_in(const std::vector<Run>& runs) {
  std::vector<std::string> out;
  for (const Run& run : runs) {
    if (run.summary->losses.any()) out.push_back("events: " + store::text_of(run.summary->losses));
    if (run.summary->kept) out.push_back(text_of(*run.summary->kept));
    out.insert(out.end(), run.summary->problems.begin(), run.summary->problems.end());
  }
  return out;
}

std::size_t fewest_steps(const std::vector<Run>& runs) {
  std::size_t fewest = runs.empty() ? 0 : SIZE_MAX;
  for (const Run& run : runs) {
    const auto& steps = run.store->steps();
    const auto ended = static_cast<std::size_t>(std::count_if(
        steps.begin(), steps.end(), [](const store::StepRow& row) { return row.end_ns != store::kOpen; }));
    fewest = std::min(fewest, ended - (ended > 0 && steps.size() > 1 ? 1 : 0));
  }
  return fewest;
}

nlohmann::json flat_settings(const std::string& config_json) {
  const auto config = parse_foreign(config_json);
  if (!config.is_object()) return nlohmann::json(nlohmann::json::value_t::discarded);
  // flatten() of an empty object would return an entry with an empty key.
  const nlohmann::json flat = config.empty() ? nlohmann::json::object() : config.flatten();
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.substr(pointer.empty() ? 0 : 1);
    std::replace(key.begin(), key.end(), '/', '.');
    out[key] = value;
  }
  return out;
}

}  // namespace shardscope::analysis
