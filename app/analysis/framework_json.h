// The framework and what it does not record, as in `info --json` and `summary --json`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "instrumentation/capability.h"

namespace shardscope::analysis {

/// ["steps", "modules"]
[[nodiscard]] inline nlohmann::json capability_names(std::uint64_t capabilities) {
  nlohmann::json out = nlohmann::json::array();
  for (std::uint8_t bit = 0; bit < instrumentation::kCapabilityCount; ++bit) {
    if ((capabilities >> bit & 1U) != 0)
      out.push_back(instrumentation::name_of(static_cast<instrumentation::Capability>(bit)));
  }
  return out;
}

/// Adds `framework`, `records` (null: not reported) and `not_recorded` to the JSON object of a run.
inline void add_framework(nlohmann::json& run, const std::string& framework, std::uint64_t records,
                          const std::vector<instrumentation::NotRecorded>& not_recorded) {
  run["framework"] = framework.empty() ? nlohmann::json(nullptr) : nlohmann::json(framework);
  run["records"] = records == 0 ? nlohmann::json(nullptr) : capability_names(records);
  run["not_recorded"] = nlohmann::json::array();
  for (const instrumentation::NotRecorded& lack : not_recorded)
    run["not_recorded"].push_back({{"what", capability_names(lack.what)}, {"why", lack.why}});
}

/// As text: "modules, prefetches: compiled with DeepCompile".
[[nodiscard]] inline std::string lack_text(const instrumentation::NotRecorded& lack) {
  std::string out;
  for (const nlohmann::json& name : capability_names(lack.what))
    out += (out.empty() ? "" : ", ") + name.get<std::string>();
  return out + ": " + lack.why;
}

}  // namespace shardscope::analysis
