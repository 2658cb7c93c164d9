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

/// `entered`: when every rank had come; 0: not recorded.
inline void take_part(RankActivity& rank, std::uint64_t instance, Interval at, std::int64_t entered,
                      instrumentation::StreamId stream = instrumentation::StreamId::gather) {
  rank.collectives.push_back({instance, at, entered, instrumentation::CollectiveOp::all_gather, stream, 7});
  rank.comm = rank.comm.unite(IntervalSet({at}));
}

}  // namespace shardscope::analysis
