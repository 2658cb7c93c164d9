// Durations of spans over a whole run, from the distributions of a recording: per kind over all ranks, and
// per module. docs/recording.md, "What was not kept".
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
  std::string module;  ///< its path; empty: all modules
  std::uint64_t count = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p99_ms = 0;  ///< within QuantileSketch::kError
  double min_ms = 0, max_ms = 0;                          ///< exact
  /// The rank with the longest 99 % quantile; nullopt for a module (counted over all ranks) and for a single
  /// rank.
  struct Rank {
    std::uint32_t rank = 0;
    double p99_ms = 0;
  };
  std::optional<Rank> longest;
};

struct Distributions {
  std::vector<Distribution> list;
  /// Whether they cover the whole run. False if the recorder is still running or was killed: it writes them
  /// once a minute, and spans not yet in a block are not counted.
  bool whole = false;
};

/// nullopt if the recording has no limits. First kinds and codes over all ranks, by total time descending,
/// then modules in the same order.
[[nodiscard]] std::optional<Distributions> distributions(const store::Store& store,
                                                         const store::RecordingInfo& info);
/// The same of each rank, without modules: by rank, then name. Empty if the recording has no limits.
struct RankDistribution {
  std::uint32_t rank = 0;
  Distribution spans;  ///< `module` and `longest` are empty
};
[[nodiscard]] std::vector<RankDistribution> rank_distributions(const store::RecordingInfo& info);
/// A table of the rows over all modules and ranks; empty if there are none.
[[nodiscard]] std::string text_of(const std::optional<Distributions>& all);
/// null if the recording has no limits.
[[nodiscard]] nlohmann::json distributions_json(const std::optional<Distributions>& all);

}  // namespace shardscope::analysis
