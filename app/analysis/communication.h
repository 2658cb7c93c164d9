// Collectives: volume, bandwidth, and the volume expected by ZeRO's formulas.
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
/// Whether the rank recorded the time at which every rank had entered this completed collective.
[[nodiscard]] inline bool all_ranks_entered(const store::Span& collective) noexcept {
  return collective.mark_ns > collective.begin_ns && collective.mark_ns <= collective.end_ns;
}
/// Begin of the transfer as known to this rank: the time at which every rank had entered, else the
/// collective's begin.
[[nodiscard]] inline std::int64_t moves_from(const store::Span& collective) noexcept {
  return all_ranks_entered(collective) ? collective.mark_ns : collective.begin_ns;
}
/// The described group of a rank's collective; null: no group, or one without a description.
[[nodiscard]] const instrumentation::GroupInfo* group_of(const store::Store& store, std::uint32_t rank,
                                                         const store::Span& collective);
/// Ranks of a collective, ascending: those of its described group, else those of its scope under the run's
/// settings (plan::make_zero_groups).
struct CollectiveRanks {
  std::uint32_t first = 0, stride = 1, count = 0;
  const instrumentation::GroupInfo* described = nullptr;  ///< non-null: the ranks are this group's
  const instrumentation::GroupInfo* copy = nullptr;       ///< of which `first` is an index; null: all ranks
  [[nodiscard]] std::vector<std::uint32_t> list() const;
  /// Hash of the members: equal on every rank of the group. Not 0.
  [[nodiscard]] std::uint64_t key() const noexcept;
};
/// nullopt for a group without a description, for a scope unknown to this version, and for a rank that is not
/// part of the run.
[[nodiscard]] std::optional<CollectiveRanks> collective_ranks(const store::Store& store, std::uint32_t rank,
                                                              const store::Span& collective);
/// A collective's position among those of its group, of any operation: the same on every rank of the group,
/// even if ranks give the group different ids. If the members of the group are not known, the position is
/// unique to this rank.
[[nodiscard]] std::uint64_t place_in_group(const store::Store& store, std::uint32_t rank,
                                           const store::Span& collective);
/// Whether two positions belong to the same group; then the smaller one comes first.
[[nodiscard]] bool in_one_order(std::uint64_t place, std::uint64_t other) noexcept;
/// Identifies a collective within a step: equal on the ranks of its group, which have the same lane,
/// operation and position; different for disjoint groups.
[[nodiscard]] std::uint64_t instance_of(const store::Store& store, std::uint32_t rank,
                                        instrumentation::StreamId stream, const store::Span& collective);

/// Number of ranks in a rank's collective: those of its group, or of the run if the group is not known.
[[nodiscard]] std::uint32_t ranks_of(const store::Store& store, std::uint32_t rank,
                                     const store::Span& collective);

/// The collectives of one step on `lowest`, one of the ranks added to `times`: the shortest transfer over the
/// ranks of each instance, which excludes waiting for late peers, and the mean duration, which is the cost
/// (metrics.md 2.3).
[[nodiscard]] std::map<instrumentation::CollectiveOp, OpTotals> collectives_of_step(
    const store::Store& store, const RankStep& lowest, const CollectiveTimes& times);

/// The totals of an operation with its rates (metrics.md 2.3).
[[nodiscard]] OpRow row_of(instrumentation::CollectiveOp op, const OpTotals& totals);

/// Outcomes of a rank's prefetches in [begin, end), a completed step: gathered parameters are released within
/// the step of their prefetch. As reported by the rank (prefetch_outcome), or derived_outcomes() if it
/// reports none.
[[nodiscard]] Prefetch prefetch_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                         std::int64_t end_ns);
/// The same derived from spans of gathers and waits, with the rule of plan::judge_prefetch: for attached
/// frameworks, whose ranks do not report outcomes.
[[nodiscard]] Prefetch derived_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                        std::int64_t end_ns);

}  // namespace shardscope::analysis
