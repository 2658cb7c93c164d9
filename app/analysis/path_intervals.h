// A rank's time as disjoint stretches, and the arrivals of ranks in collectives: input of the critical path
// and of replays of a step.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "app/analysis/critical_path.h"
#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

/// The rank that entered a collective last, and when: its transfer begins then.
struct Arrival {
  std::uint32_t last = 0;  ///< index of the rank
  std::int64_t last_ns = 0;
  std::uint32_t ranks = 0;
};
using Arrivals = std::unordered_map<std::uint64_t, Arrival>;  ///< by instance
[[nodiscard]] Arrivals arrivals_of(std::span<const RankActivity> ranks);

/// Begin of the transfer on this rank, within its own span.
[[nodiscard]] std::int64_t moves_from(const Participation& one, const Arrivals& arrivals);

/// An interval of one rank with one class of work. `comm`: a collective is in flight and nothing else runs.
struct PathInterval {
  Interval at;
  PathPart part{};
  bool comm = false;
};
/// Partitions the window of a rank, by time, without gaps; of overlapping classes the first one wins.
[[nodiscard]] std::vector<PathInterval> path_intervals_of(const RankActivity& rank, Interval window);

}  // namespace shardscope::analysis
