#include "app/analysis/communication.h"

#include <algorithm>
#include <map>

#include "app/store/span_time.h"
#include "instrumentation/bus_factor.h"

namespace shardscope::analysis {
namespace {

using ev::CollectiveOp;
using ev::StreamId;

}  // namespace

std::uint32_t ranks_of(const store::Span& collective, std::uint32_t world) noexcept {
  const ev::CollectiveCode code = ev::as<ev::EventKind::collective_begin>(collective).code;
  return !code.known() || code.ranks() == 0 ? world : code.ranks();
}

namespace {

CollectiveTimes::Times times_of(const store::Span& span) {
  const bool entered = span.mark_ns > span.begin_ns && span.mark_ns <= span.end_ns;
  return {.transfer_ns = span.end_ns - (entered ? span.mark_ns : span.begin_ns),
          .sum_ns = span.end_ns - span.begin_ns,
          .ranks = 1,
          .entered = entered};
}

}  // namespace

void CollectiveTimes::add(const store::Store& store, const RankStep& rank) {
  for_each_collective(
      store, rank.rank, rank.begin_ns, rank.end_ns, [&](StreamId stream, const store::Span& span) {
        Times own = times_of(span);
        // Held at a gate, a rank did not wait for others; what is transferred meanwhile runs on.
        own.sum_ns -=
            store::paused_ns(store, rank.rank, span.begin_ns, own.entered ? span.mark_ns : span.end_ns);
        const auto [at, inserted] = times_.emplace(instance_of(stream, span), own);
        if (inserted) return;
        Times& known = at->second;
        known.transfer_ns = std::min(known.transfer_ns, own.transfer_ns);
        known.sum_ns += own.sum_ns;
        ++known.ranks;
        known.entered = known.entered || own.entered;
      });
}

CollectiveTimes::Times CollectiveTimes::of(StreamId stream, const store::Span& collective) const {
  const auto found = times_.find(instance_of(stream, collective));
  return found == times_.end() ? times_of(collective) : found->second;
}

std::map<CollectiveOp, OpTotals> collectives_of_step(const store::Store& store, const RankStep& lowest,
                                                     const CollectiveTimes& times) {
  std::map<CollectiveOp, OpTotals> ops;
  const std::uint32_t world = store.has_tables() ? store.tables().world : 1;
  for_each_collective(
      store, lowest.rank, lowest.begin_ns, lowest.end_ns, [&](StreamId stream, const store::Span& span) {
        const auto collective = ev::as<ev::EventKind::collective_begin>(span);
        OpTotals& totals = ops[collective.op];
        ++totals.count;
        totals.bytes += collective.bytes;
        totals.elems += collective.elems;
        totals.bus_bytes +=
            static_cast<double>(collective.bytes) * ev::bus_factor(collective.op, ranks_of(span, world));
        const CollectiveTimes::Times took = times.of(stream, span);
        totals.transfer_ns += took.transfer_ns;
        totals.waiting_ns += static_cast<double>(took.sum_ns) / took.ranks;
      });
  return ops;
}

}  // namespace shardscope::analysis
