#include "app/analysis/digest.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "app/analysis/communication.h"
#include "app/analysis/free_parts.h"
#include "app/analysis/kept.h"
#include "app/analysis/spans.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;

/// The end of a step. If it was lost, the store has the rank's last event before the loss as the end: use the
/// latest end of the other ranks instead, or the begin of the rank's own next step if that is earlier. The
/// time up to there counts as unrecorded.
std::int64_t end_of(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  const std::span<const store::StepRow> rows = store.steps();
  // A step's row begins when the first rank begins it: it is the last row with such a begin, or one of the
  // rows just before.
  auto row = std::partition_point(rows.begin(), rows.end(),
                                  [&](const store::StepRow& r) { return r.begin_ns <= window.begin_ns; });
  while (row != rows.begin() && std::prev(row)->step != window.step) --row;
  if (row == rows.begin()) return window.end_ns;
  const std::int64_t end_ns = std::prev(row)->end_ns;
  if (end_ns == store::kOpen || end_ns <= window.end_ns) return window.end_ns;
  const auto gap = std::ranges::find_if(store.gaps(), [&](const store::Gap& g) {
    return g.rank == rank && g.begin_ns >= window.end_ns && g.begin_ns < end_ns;
  });
  if (gap == store.gaps().end()) return window.end_ns;
  std::int64_t next_ns = store::kOpen;  // begin of the rank's next step
  store.for_each_span({rank, ev::StreamId::host}, 0, window.end_ns, end_ns, [&](const store::Span& span) {
    if (span.kind == EventKind::step_begin && span.begin_ns > window.begin_ns)
      next_ns = std::min(next_ns, span.begin_ns);
  });
  // The next step began before the gap: this step's end was recorded, and the other ranks ended later.
  if (next_ns < gap->begin_ns) return window.end_ns;
  return std::max(window.end_ns, std::min(end_ns, next_ns));
}

/// Whether no event of the step was deleted by the limits of the recording; events may still be lost.
bool was_kept(const store::Store& store, std::uint32_t step) {
  if (store.not_kept().events == 0) return true;
  const std::span<const store::StepRow> rows = store.steps();
  const auto row = std::ranges::lower_bound(rows, step, {}, &store::StepRow::step);
  return row == rows.end() || row->step != step || is_kept(store, row->begin_ns, row->end_ns);
}

}  // namespace

bool StepDigest::prefetch_whole() const noexcept {
  return std::ranges::all_of(ranks,
                             [](const RankStep& rank) { return rank.recorded.whole(ev::Detail::params); });
}

bool StepDigest::lacks_events() const noexcept {
  return std::ranges::any_of(ranks, [](const RankStep& rank) { return rank.recorded.events_missing; });
}

double StepDigest::elements() const {
  double sum = 0;
  for (const auto& [op, totals] : ops) {
    sum += static_cast<double>(totals.elems) * (op == ev::CollectiveOp::all_reduce ? 2 : 1);
  }
  return sum;
}

bool Digest::update(const store::Store& store, std::optional<std::chrono::nanoseconds> time,
                    std::int64_t until_ns) {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t known_until_ns = steps_known_until(store, until_ns);
  const OutOfTime out_of_time = [&] { return time && std::chrono::steady_clock::now() - begin >= *time; };
  const std::size_t before = steps_.size();
  Found found = Found::no_step;
  while ((found = find_windows(store, until_ns, out_of_time)) == Found::step) {
    for (const store::RankRow& row : store.ranks()) {
      const std::vector<RankStep>& taken = pending_.digest.ranks;
      const auto at = std::lower_bound(taken.begin(), taken.end(), row.rank,
                                       [](const RankStep& known, std::uint32_t r) { return known.rank < r; });
      if (at != taken.end() && at->rank == row.rank) continue;
      take_rank(store, row.rank, pending_.windows.at(row.rank), known_until_ns, out_of_time);
      if (!out_of_time()) continue;
      found = Found::out_of_time;
      break;
    }
    if (pending_.digest.ranks.size() >= store.ranks().size()) complete_step(store);
    if (found == Found::out_of_time) break;
  }
  // Sums over the whole run: for a growing run only when steps were added.
  if (steps_.size() != before || until_ns == store::Store::kEnd) {
    count_trace_events(store);
    count_between_steps(store);
  }
  return found != Found::out_of_time;
}

Digest::Found Digest::find_windows(const store::Store& store, std::int64_t until_ns,
                                   const OutOfTime& out_of_time) {
  std::map<std::uint32_t, StepWindow>& windows = pending_.windows;
  while (!store.ranks().empty()) {
    for (const store::RankRow& row : store.ranks()) {
      if (windows.contains(row.rank)) continue;
      const std::optional<StepWindow> window = next_step(store, row.rank, until_ns);
      if (!window) return Found::no_step;
      windows[row.rank] = *window;
    }
    // Match steps by number, not by count: after a loss a rank continues with a later step, and must not be
    // compared with a different step of the other ranks.
    const StepWindow latest =
        std::ranges::max_element(windows, {}, [](const auto& one) { return one.second.begin_ns; })->second;
    const std::size_t skipped = std::erase_if(windows, [&](const auto& one) {
      if (one.second.step == latest.step) return false;
      taken_until_[one.first] = std::max(one.second.end_ns, one.second.begin_ns + 1);
      return true;
    });
    if (skipped == 0) {
      if (was_kept(store, latest.step)) return Found::step;
      for (const auto& [rank, window] : windows)
        taken_until_[rank] = std::max(window.end_ns, window.begin_ns + 1);
      pending_ = {};
    }
    // A new rank lacks the step: discard the ranks already read for it, so that two steps are not mixed.
    const auto dropped = [&](const RankStep& rank) { return !windows.contains(rank.rank); };
    if (std::ranges::any_of(pending_.digest.ranks, dropped)) {
      Pending empty;
      empty.windows.swap(windows);
      pending_ = std::move(empty);
    }
    if (out_of_time()) return Found::out_of_time;
  }
  return Found::no_step;
}

std::optional<StepWindow> Digest::next_step(const store::Store& store, std::uint32_t rank,
                                            std::int64_t until_ns) {
  const auto taken = taken_until_.find(rank);
  const std::int64_t from = taken == taken_until_.end() ? store::Store::kBegin : taken->second;
  if (const RankReading* read = ahead_.next(rank, from))
    return read->window.end_ns > until_ns ? std::nullopt : std::optional(read->window);
  std::optional<StepWindow> window = step_from(store, rank, from, until_ns);
  if (window) window->end_ns = end_of(store, rank, *window);
  return window;
}

void Digest::take_rank(const store::Store& store, std::uint32_t rank, const StepWindow& window,
                       std::int64_t known_until_ns, const OutOfTime& out_of_time) {
  StepDigest& digest = pending_.digest;
  if (digest.ranks.empty() || rank < digest.ranks.front().rank) digest.step = window.step;
  std::optional<RankReading> known = ahead_.take(rank, window);
  const bool fresh = !known;
  if (fresh) known = read_step(store, rank, window);
  RankReading& read = *known;
  pending_.micro_batches.push_back(std::move(read.micro_batches));
  pending_.activities.push_back(std::move(read.activity));
  pending_.durations.add(read.collectives);
  // Sorted by rank: the ranks may be read in any order.
  digest.ranks.insert(std::upper_bound(digest.ranks.begin(), digest.ranks.end(), rank,
                                       [](std::uint32_t r, const RankStep& one) { return r < one.rank; }),
                      read.step);
  digest.prefetch.add(read.prefetch);
  pending_.waits.add(read.waits);
  if (fresh)
    ahead_.read(store, rank, std::max(window.end_ns, window.begin_ns + 1), known_until_ns, out_of_time);
}

void Digest::complete_step(const store::Store& store) {
  StepDigest& digest = pending_.digest;
  const RankStep& lowest = digest.ranks.front();
  digest.uneven = unevenness(pending_.micro_batches);
  digest.micro_steps = recorded_micro_steps(store, lowest.rank, lowest.begin_ns, lowest.end_ns);
  digest.ops = collectives_of_step(store, lowest, pending_.durations);
  if (const auto path = critical_path(pending_.activities)) {
    digest.path = path->times;
    digest.path_gains = gains_without(pending_.activities, *path);
    for (const PathPiece& piece : path->pieces) {
      if (piece.part != PathPart::paused)
        longest_pieces_.add({piece, digest.step, piece.at.end - piece.at.begin});
    }
  }
  DelayAttribution delays = attribute_delays(pending_.activities);
  digest.late = std::move(delays.late);
  digest.pairs_whole = delays.pairs.size() <= StepDigest::kPairs;
  if (!digest.pairs_whole) {
    std::ranges::nth_element(delays.pairs, delays.pairs.begin() + StepDigest::kPairs, std::greater{},
                             &WaitedFor::ns);
    delays.pairs.resize(StepDigest::kPairs);
  }
  digest.pairs = std::move(delays.pairs);
  std::ranges::sort(delays.exposed, {}, &Exposure::rank);
  for (RankStep& rank : digest.ranks) {
    const auto exposed = std::ranges::lower_bound(delays.exposed, rank.rank, {}, &Exposure::rank);
    if (exposed != delays.exposed.end() && exposed->rank == rank.rank) rank.exposed = *exposed;
  }
  for (const RankActivity& activity : pending_.activities)
    groups_.insert(activity.groups.begin(), activity.groups.end());
  for (const GroupExposure& one : delays.groups) {
    const auto rank = std::ranges::lower_bound(digest.ranks, one.rank, {}, &RankStep::rank);
    if (rank != digest.ranks.end() && rank->rank == one.rank) rank->groups.push_back(one);
  }
  // The host fills buckets ahead of the device: events missing up to one step earlier matter as well.
  const std::int64_t from_ns = lowest.begin_ns - (lowest.end_ns - lowest.begin_ns);
  if (store.has_tables() &&
      recorded_in(store, lowest.rank, from_ns, lowest.end_ns).whole(ev::Detail::params)) {
    digest.volume = volumes_.of(store.tables(), digest.micro_steps)
                        .parts(store, lowest.rank, digest.step, lowest.begin_ns, lowest.end_ns);
  }
  longest_waits_.add(pending_.waits.all());
  for (const RankStep& rank : digest.ranks) {
    taken_until_[rank.rank] = std::max(rank.end_ns, rank.begin_ns + 1);
  }
  constexpr std::size_t kFewest = 8;
  if (steps_.size() >= std::max(most_rank_steps_ / std::max<std::size_t>(digest.ranks.size(), 1), kFewest)) {
    const std::size_t gone = steps_.size() / 4;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(gone));
    evicted_steps_ += gone;
  }
  if (steps_.empty()) from_first_step_ = store.steps().empty() || digest.step <= store.steps().front().step;
  steps_.push_back(std::move(digest));
  pending_ = {};
}

const std::vector<std::uint32_t>& Digest::members_of(std::uint64_t group) const {
  static const std::vector<std::uint32_t> none;
  const auto found = groups_.find(group);
  return found == groups_.end() ? none : found->second;
}

void Digest::count_trace_events(const store::Store& store) {
  trace_record_ = trace_complete_ = trace_invalidated_ = 0;
  TraceCounts evaluated;
  for (const store::RankRow& row : store.ranks()) {
    const auto count = [&](EventKind kind, plan::TraceMode mode) {
      return store.instant_count(row.rank, kind, static_cast<std::uint8_t>(mode));
    };
    trace_record_ += count(EventKind::trace_mode, plan::TraceMode::record);
    trace_complete_ += count(EventKind::trace_mode, plan::TraceMode::complete);
    trace_invalidated_ += store.instant_count(row.rank, EventKind::trace_invalidated);
    evaluated.record += count(EventKind::eval_trace_mode, plan::TraceMode::record);
    evaluated.complete += count(EventKind::eval_trace_mode, plan::TraceMode::complete);
  }
  if (evaluated.record + evaluated.complete > 0) eval_trace_ = evaluated;
}

void Digest::count_between_steps(const store::Store& store) {
  for (const store::SpanTotal& total : store.span_totals()) {
    if (total.kind != EventKind::phase_begin || total.lane.stream != ev::StreamId::compute) continue;
    Checkpoints sum = checkpoints(total.lane.rank);
    if (total.code == static_cast<std::uint8_t>(ev::Phase::checkpoint_save)) {
      sum.saves = static_cast<std::uint32_t>(total.count);
      sum.save_ns = total.total_ns;
    } else if (total.code == static_cast<std::uint8_t>(ev::Phase::checkpoint_load)) {
      sum.loads = static_cast<std::uint32_t>(total.count);
      sum.load_ns = total.total_ns;
    } else if (total.code == static_cast<std::uint8_t>(ev::Phase::evaluation)) {
      evaluations_[total.lane.rank] = {static_cast<std::uint32_t>(total.count), total.total_ns};
      continue;
    } else {
      continue;
    }
    checkpoints_[total.lane.rank] = sum;
  }
}

Evaluations Digest::evaluations(std::uint32_t rank) const {
  const auto found = evaluations_.find(rank);
  return found == evaluations_.end() ? Evaluations{} : found->second;
}

Checkpoints Digest::checkpoints(std::uint32_t rank) const {
  const auto found = checkpoints_.find(rank);
  return found == checkpoints_.end() ? Checkpoints{} : found->second;
}

Digest digest_of(const store::Store& store) {
  Digest digest;
  (void)digest.update(store);
  return digest;
}

}  // namespace shardscope::analysis
