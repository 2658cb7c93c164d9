// Ranks of a step whose times are chosen, for what is computed from RankActivity.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

inline RankActivity rank_with(std::uint32_t rank, std::vector<Interval> compute, std::int64_t end = 1000) {
  RankActivity out;
  out.rank = rank;
  out.window = {0, end};
  out.device = IntervalSet(std::move(compute));
  out.compute = out.device;
  out.known = true;
  return out;
}

/// `entered`: when every rank had entered; 0: not recorded.
inline void take_part(RankActivity& rank, std::uint64_t instance, Interval at, std::int64_t entered,
                      instrumentation::StreamId stream = instrumentation::StreamId::gather) {
  rank.collectives.push_back({instance, at, entered, instrumentation::CollectiveOp::all_gather, stream, 7});
  rank.comm = rank.comm.unite(IntervalSet({at}));
}

/// Clocks that contradict each other: each rank's begin of a collective is after the end of the other's.
inline std::vector<RankActivity> ranks_of_contradicting_clocks() {
  std::vector<RankActivity> ranks{rank_with(0, {{0, 100}}), rank_with(1, {{0, 100}})};
  take_part(ranks[0], 1, {100, 300}, 0);
  take_part(ranks[1], 1, {900, 1000}, 0);
  take_part(ranks[1], 2, {100, 300}, 0);
  take_part(ranks[0], 2, {900, 1000}, 0);
  return ranks;
}

}  // namespace shardscope::analysis
