// Unmatched span ends as JSON, for `info` and `summary`.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// Store::unmatched_ends() as JSON: {"count", "explained", "by": [{"rank", "kind", "count", "explained"}]}.
[[nodiscard]] inline nlohmann::json unmatched_ends_json(
    const std::vector<store::Store::UnmatchedEnds>& ends) {
  std::uint64_t count = 0, explained = 0;
  nlohmann::json by = nlohmann::json::array();
  for (const store::Store::UnmatchedEnds& row : ends) {
    count += row.count;
    explained += row.explained;
    by.push_back({{"rank", row.rank},
                  {"kind", store::ev::name_of(row.kind)},
                  {"count", row.count},
                  {"explained", row.explained}});
  }
  return {{"count", count}, {"explained", explained}, {"by", std::move(by)}};
}

}  // namespace shardscope::analysis
