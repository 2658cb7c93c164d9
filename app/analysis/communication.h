// Collectives: what was moved, how fast, and what ZeRO's expression says should have been moved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/spans.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// Calls visit(stream, span) for every ended collective of a rank that overlaps [begin, end).
template <typename Visitor>
void for_each_collective(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                         std::int64_t end_ns, Visitor&& visit) {
  using instrumentation::StreamId;
  for (const StreamId stream : {StreamId::gather, StreamId::reduce, StreamId::compute}) {
    for_each_span(store, {rank, stream}, begin_ns, end_ns, [&](const store::Span& span) {
      if (span.kind == instrumentation::EventKind::collective_begin && span.end_ns != store::kOpen)
        visit(stream, span);
    });
  }
}
/// Whether a rank recorded when every rank had entered an ended collective.
[[nodiscard]] inline bool all_ranks_entered(const store::Span& collective) noexcept {
  return collective.mark_ns > collective.begin_ns && collective.mark_ns <= collective.end_ns;
}
/// From where on it moves bytes, as far as this rank knows: from when every rank had entered, else from its
/// begin.
[[nodiscard]] inline std::int64_t moves_from(const store::Span& collective) noexcept {
  return all_ranks_entered(collective) ? collective.mark_ns : collective.begin_ns;
}
/// The described group that a rank's collective is in; null: none, or it is not described.
[[nodiscard]] const instrumentation::GroupInfo* group_of(const store::Store& store, std::uint32_t rank,
                                                         const store::Span& collective);
/// Ranks of a collective: those of its described group, else those that its scope has by the run's settings
/// (plan::make_zero_groups), ascending.
struct CollectiveRanks {
  std::uint32_t first = 0, stride = 1, count = 0;
  const instrumentation::GroupInfo* described = nullptr;  ///< then the ranks are that one's
  const instrumentation::GroupInfo* copy = nullptr;       ///< `first` counts within it; null: all ranks
  [[nodiscard]] std::vector<std::uint32_t> list() const;
};
/// Nothing of a group without a description, of a scope that this version does not know, or of a rank beyond
/// the run's.
[[nodiscard]] std::optional<CollectiveRanks> collective_ranks(const store::Store& store, std::uint32_t rank,
                                                              const store::Span& collective);
/// A collective's place in the order of its group, whatever its operation: the same number on every rank of
/// the group, which each rank may give another id. Where it is not known who is in the group no other rank
/// has the number.
[[nodiscard]] std::uint64_t place_in_group(const store::Store& store, std::uint32_t rank,
                                           const store::Span& collective);
/// Whether two such places are of the same group: the smaller one comes first.
[[nodiscard]] bool in_one_order(std::uint64_t place, std::uint64_t other) noexcept;
/// Names an instance of a collective within a step: on every rank of its group it has the same lane,
/// operation and place in the group, and groups beside each other have instances of their own.
[[nodiscard]] std::uint64_t instance_of(const store::Store& store, std::uint32_t rank,
                                        instrumentation::StreamId stream, const store::Span& collective);

/// Ranks among which a rank's collective was: its own group's, or all where the recording does not say.
[[nodiscard]] std::uint32_t ranks_of(const store::Store& store, std::uint32_t rank,
                                     const store::Span& collective);

/// The collectives of one step on `lowest`, one of the ranks that were added to `times`: with the shortest
/// transfer over ranks of each instance, so that waiting for a late peer is not taken for transfer, and with
/// the mean duration, which is what they cost (metrics.md 2.3).
[[nodiscard]] std::map<instrumentation::CollectiveOp, OpTotals> collectives_of_step(
    const store::Store& store, const RankStep& lowest, const CollectiveTimes& times);

/// Outcomes of a rank's prefetches in [begin, end), a completed step: nothing gathered outlives the step it
/// was prefetched in. What the rank itself reported (prefetch_outcome); where a rank reported none,
/// derived_outcomes.
[[nodiscard]] Prefetch prefetch_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                         std::int64_t end_ns);
/// The same from the spans of gathers and waits, by the rule of plan::judge_prefetch: for attached
/// frameworks, whose ranks do not report them.
[[nodiscard]] Prefetch derived_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                        std::int64_t end_ns);

}  // namespace shardscope::analysis
