// How long spans took over a whole run, from a recording's distributions: of each kind over all ranks, and of
// each module. docs/recording.md, "What was not kept".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::analysis {

struct Distribution {
  std::string what;    ///< "collective all_gather", "module forward"
  std::string module;  ///< its path; empty: of all
  std::uint64_t count = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p99_ms = 0;  ///< within QuantileSketch::kError
  double min_ms = 0, max_ms = 0;                          ///< exact
  /// The rank whose own 99 % is the longest; nothing of a module, which is counted over all ranks, and of a
  /// single rank.
  struct Rank {
    std::uint32_t rank = 0;
    double p99_ms = 0;
  };
  std::optional<Rank> longest;
};

struct Distributions {
  std::vector<Distribution> list;
  /// Whether they are of the whole run. False where its recorder goes on or was killed: it writes them once a
  /// minute, and spans of which no block was made yet are not among them.
  bool whole = false;
};

/// Nothing where the recording has no limits. Those of all ranks by kind and code, the ones that took most in
/// all first, then those of modules likewise.
[[nodiscard]] std::optional<Distributions> distributions(const store::Store& store,
                                                         const store::RecordingInfo& info);
/// A table of those of all modules and ranks; empty where there are none.
[[nodiscard]] std::string text_of(const std::optional<Distributions>& all);
/// null where the recording has no limits.
[[nodiscard]] nlohmann::json distributions_json(const std::optional<Distributions>& all);

}  // namespace shardscope::analysis
