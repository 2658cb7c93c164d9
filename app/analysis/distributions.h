// How long spans took over a whole run, from a recording's distributions: of each kind over all ranks, and of
// each module. docs/recording.md, "Distributions".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::analysis {

struct Distribution {
  std::string what;    ///< "collective all_gather", "module forward"
  std::string module;  ///< its path; empty: of all
  std::uint64_t count = 0;
  double p50_ms = 0, p95_ms = 0, p99_ms = 0;  ///< within QuantileSketch::kError
  double min_ms = 0, max_ms = 0;              ///< exact
};

/// Those of all ranks by kind and code, the ones that took most in all first, then those of modules likewise.
[[nodiscard]] std::vector<Distribution> distributions(const store::Store& store,
                                                      const store::RecordingInfo& info);
/// A table of those of all modules and ranks; empty where there are none.
[[nodiscard]] std::string text_of(const std::vector<Distribution>& all);
[[nodiscard]] nlohmann::json distributions_json(const std::vector<Distribution>& all);

}  // namespace shardscope::analysis
