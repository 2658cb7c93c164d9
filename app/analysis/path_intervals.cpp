#include "app/analysis/path_intervals.h"

#include <algorithm>

namespace shardscope::analysis {

Arrivals arrivals_of(std::span<const RankActivity> ranks) {
  Arrivals out;
  for (std::uint32_t index = 0; index < ranks.size(); ++index) {
    for (const Participation& one : ranks[index].collectives) {
      const auto [at, inserted] = out.try_emplace(one.instance, Arrival{index, one.at.begin, 1});
      if (inserted) continue;
      ++at->second.ranks;
      if (one.at.begin > at->second.last_ns) {
        at->second.last = index;
        at->second.last_ns = one.at.begin;
      }
    }
  }
  return out;
}

std::int64_t moves_from(const Participation& one, const Arrivals& arrivals) {
  if (one.entered_ns > 0) return std::clamp(one.entered_ns, one.at.begin, one.at.end);
  const Arrival& arrival = arrivals.at(one.instance);
  return arrival.ranks < 2 ? one.at.begin : std::clamp(arrival.last_ns, one.at.begin, one.at.end);
}

std::vector<PathInterval> path_intervals_of(const RankActivity& rank, Interval window) {
  std::vector<PathInterval> out;
  IntervalSet left({window});
  const auto take = [&](const IntervalSet& of, PathPart part, bool comm = false) {
    const IntervalSet taken = left.intersect(of);
    for (const Interval& at : taken.intervals()) out.push_back({at, part, comm});
    left = left.subtract(of);
  };
  take(rank.paused, PathPart::paused);
  take(rank.checkpoint, PathPart::checkpoint);
  take(rank.missing, PathPart::unrecorded);
  if (!rank.known) {
    take(left, PathPart::unrecorded);
  } else {
    take(rank.device.intersect(rank.forward), PathPart::forward);
    take(rank.device.intersect(rank.backward), PathPart::backward);
    take(rank.device.intersect(rank.optimizer), PathPart::optimizer);
    take(rank.device, PathPart::compute);
    take(rank.compute, PathPart::cpu_optimizer);
    // Waiting for data takes precedence: it bounds computation whatever else is in flight.
    take(rank.data, PathPart::data);
    take(rank.comm, PathPart::transfer, true);
    take(rank.copy, PathPart::copy);
    take(left, PathPart::idle);
  }
  std::ranges::sort(out, {}, [](const PathInterval& one) { return one.at.begin; });
  return out;
}

}  // namespace shardscope::analysis
