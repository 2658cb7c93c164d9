// A rank's time in a window as disjoint stretches, and collectives' arrivals: what the critical path is
// walked along, and what a step is replayed from.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "app/analysis/critical_path.h"
#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

/// Who entered a collective last, and when: from then on its bytes move.
struct Arrival {
  std::uint32_t last = 0;  ///< index of the rank
  std::int64_t last_ns = 0;
  std::uint32_t ranks = 0;
};
using Arrivals = std::unordered_map<std::uint64_t, Arrival>;  ///< by instance
[[nodiscard]] Arrivals arrivals_of(std::span<const RankActivity> ranks);

/// From when on this rank's bytes moved: within its own span.
[[nodiscard]] std::int64_t moves_from(const Participation& one, const Arrivals& arrivals);

/// A stretch of one rank's time of one kind. `comm`: a collective is in flight and nothing else goes on.
struct Stretch {
  Interval at;
  PathPart part{};
  bool comm = false;
};
/// The window of a rank, divided: earlier classes win. By time, without gaps.
[[nodiscard]] std::vector<Stretch> stretches_of(const RankActivity& rank, Interval window);

}  // namespace shardscope::analysis
