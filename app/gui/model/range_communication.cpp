#include "app/gui/model/range_communication.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/part_of_activity.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

/// Calls for which figures of an outdated range are still completed, so that some are shown while the range
/// keeps moving.
constexpr int kCompletedFor = 30;

/// The analysed partition of a whole step, or null.
const analysis::TimePartition* analysed(const Session& run, std::uint32_t step, std::uint32_t rank) {
  const StepTimes* const times = run.step_times(step);
  if (times == nullptr) return nullptr;
  const auto found = std::ranges::lower_bound(times->ranks, rank, {}, &StepTimes::Rank::rank);
  return found == times->ranks.end() || found->rank != rank ? nullptr : &found->time;
}

}  // namespace

double RangeCommunication::progress() const noexcept {
  if (!reading_ || reading_->pieces.empty() || reading_->figures.summary.ranks.empty()) return 1;
  const auto ranks = static_cast<double>(reading_->figures.summary.ranks.size());
  return (static_cast<double>(reading_->piece) * ranks + static_cast<double>(reading_->rank)) /
         (static_cast<double>(reading_->pieces.size()) * ranks);
}

void RangeCommunication::start(const AppState& app, const Query& wanted) {
  const store::Store& store = app.store();
  Reading& reading = reading_.emplace();
  reading.of = wanted;
  reading.figures.range = wanted.range;
  const analysis::Summary& run = app.run->summary();
  reading.waits_recorded =
      std::ranges::any_of(run.ranks, [](const auto& rank) { return rank.fetch_wait_ns.has_value(); });
  reading.prefetches_recorded = run.prefetch.has_value();
  for (const store::RankRow& row : store.ranks()) {
    analysis::RankSummary& rank = reading.figures.summary.ranks.emplace_back();
    rank.rank = row.rank;
    if (reading.waits_recorded) rank.fetch_wait_ns = 0;
  }
  std::ranges::sort(reading.figures.summary.ranks, {}, &analysis::RankSummary::rank);
  if (reading.prefetches_recorded) reading.figures.summary.prefetch.emplace();
  const auto steps = store.steps();
  const std::int64_t run_end = store.end_ns();
  const auto add = [&](std::optional<std::uint32_t> step, std::int64_t begin_ns, std::int64_t end_ns) {
    const Piece piece{step, begin_ns, end_ns, std::max(begin_ns, wanted.range.begin_ns),
                      std::min(end_ns, wanted.range.end_ns)};
    if (piece.from_ns < piece.to_ns) reading.pieces.push_back(piece);
  };
  add({}, 0, steps.empty() ? run_end : steps.front().begin_ns);
  for (std::size_t i = 0; i < steps.size(); ++i)
    add(steps[i].step, steps[i].begin_ns, i + 1 < steps.size() ? steps[i + 1].begin_ns : run_end);
}

void RangeCommunication::read_next(const AppState& app) {
  Reading& reading = *reading_;
  const store::Store& store = app.store();
  const Piece& piece = reading.pieces[reading.piece];
  analysis::RankSummary& sum = reading.figures.summary.ranks[reading.rank];
  const std::uint32_t rank = sum.rank;
  const analysis::TimePartition* const known =
      piece.whole() && piece.step ? analysed(*app.run, *piece.step, rank) : nullptr;
  sum.time.add(known != nullptr ? *known
                                : part_of(analysis::activity_of(store, rank, piece.begin_ns, piece.end_ns),
                                          piece.from_ns, piece.to_ns));
  analysis::for_each_span(
      store, {rank, ev::StreamId::compute}, piece.from_ns, piece.to_ns, [&](const store::Span& span) {
        const bool fetch = span.kind == ev::EventKind::fetch_wait_begin;
        const bool wait = fetch || span.kind == ev::EventKind::reduce_wait_begin ||
                          span.kind == ev::EventKind::deferred_wait_begin;
        if (!wait || span.end_ns == store::kOpen) return;
        if (fetch && sum.fetch_wait_ns)
          *sum.fetch_wait_ns += store::time_within(store, rank, span, piece.from_ns, piece.to_ns).running_ns;
        if (span.begin_ns >= piece.from_ns)
          reading.longest.add({rank, span, store::time_of(store, rank, span).running_ns});
      });
  // Outcomes that are derived need the whole step: what was prefetched may be used in the rest of it.
  const bool reported = store.instant_count(rank, ev::EventKind::prefetch_outcome) > 0;
  if (reading.prefetches_recorded && (reported || piece.whole()))
    reading.figures.summary.prefetch->add(
        analysis::prefetch_outcomes(store, rank, piece.from_ns, piece.to_ns));
  analysis::RankStep window;
  window.rank = rank;
  window.begin_ns = piece.from_ns;
  window.end_ns = piece.to_ns;
  reading.times.add(analysis::CollectiveTimes::read(store, window));
  if (++reading.rank < reading.figures.summary.ranks.size()) return;
  window.rank = reading.figures.summary.ranks.front().rank;
  for (const auto& [op, totals] : analysis::collectives_of_step(store, window, reading.times))
    reading.ops[op].add(totals);
  reading.times = {};
  reading.rank = 0;
  ++reading.piece;
}

void RangeCommunication::complete() {
  shown_ = std::move(reading_->figures);
  shown_of_ = reading_->of;
  for (const auto& [op, totals] : reading_->ops) shown_->summary.ops.push_back(analysis::row_of(op, totals));
  shown_->longest_waits = reading_->longest.all();
  reading_.reset();
  ++version_;
}

bool RangeCommunication::advance(const AppState& app, const TimeRange& range, std::chrono::nanoseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  // Later events of a live run do not change what is over.
  const bool over = !app.run->live() || range.end_ns < app.store().end_ns();
  const Query wanted{app.run->number(), range, over ? 0 : app.store().revision()};
  if (shown_ && shown_of_.run != wanted.run) {
    shown_.reset();
    ++version_;
  }
  const bool another = reading_ ? reading_->of.run != wanted.run ||
                                      (reading_->of != wanted && reading_->calls >= kCompletedFor)
                                : !shown_ || shown_of_ != wanted;
  if (another) start(app, wanted);
  if (!reading_) return false;
  ++reading_->calls;
  while (reading_->piece < reading_->pieces.size() && !reading_->figures.summary.ranks.empty()) {
    read_next(app);
    if (std::chrono::steady_clock::now() >= until) break;
  }
  const bool done = reading_->piece >= reading_->pieces.size() || reading_->figures.summary.ranks.empty();
  if (!done) return true;
  complete();
  return shown_of_ != wanted;
}

}  // namespace shardscope::gui
