#include "app/analysis/communication.h"

#include <algorithm>
#include <map>

#include "instrumentation/bus_factor.h"

namespace shardscope::analysis {
namespace {

using ev::CollectiveOp;
using ev::StreamId;

}  // namespace

std::uint32_t ranks_of(const store::Span& collective, std::uint32_t world) noexcept {
  if (collective.c == ev::kNoId) return world;
  const std::uint32_t ranks = ev::ranks_of(collective.c);
  return ranks == 0 ? world : ranks;
}

void ShortestDurations::add(const store::Store& store, const RankStep& rank) {
  for_each_collective(store, rank.rank, rank.begin_ns, rank.end_ns,
                      [&](StreamId stream, const store::Span& span) {
                        const std::int64_t duration = span.end_ns - span.begin_ns;
                        const auto [at, inserted] = shortest_.emplace(instance_of(stream, span), duration);
                        if (!inserted) at->second = std::min(at->second, duration);
                      });
}

std::int64_t ShortestDurations::of(StreamId stream, const store::Span& collective) const {
  const auto found = shortest_.find(instance_of(stream, collective));
  return found == shortest_.end() ? collective.end_ns - collective.begin_ns : found->second;
}

std::map<CollectiveOp, OpTotals> collectives_of_step(const store::Store& store, const RankStep& lowest,
                                                     const ShortestDurations& durations) {
  std::map<CollectiveOp, OpTotals> ops;
  const std::uint32_t world = store.has_tables() ? store.tables().world : 1;
  for_each_collective(
      store, lowest.rank, lowest.begin_ns, lowest.end_ns, [&](StreamId stream, const store::Span& span) {
        const auto op = static_cast<CollectiveOp>(span.code);
        OpTotals& totals = ops[op];
        ++totals.count;
        totals.bytes += span.v1;
        totals.elems += span.v0;
        totals.bus_bytes += static_cast<double>(span.v1) * ev::bus_factor(op, ranks_of(span, world));
        totals.shortest_ns += durations.of(stream, span);
      });
  return ops;
}

}  // namespace shardscope::analysis
