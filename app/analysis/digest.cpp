#include "app/analysis/digest.h"

#include <algorithm>

#include "app/analysis/communication.h"
#include "app/analysis/spans.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;

std::int64_t fetch_wait(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  std::int64_t sum = 0;
  for_each_span(store, {rank, ev::StreamId::compute}, window.begin_ns, window.end_ns,
                [&](const store::Span& span) {
                  if (span.kind != EventKind::fetch_wait_begin || span.end_ns == store::kOpen) return;
                  sum += std::min(span.end_ns, window.end_ns) - std::max(span.begin_ns, window.begin_ns);
                });
  return sum;
}

std::uint64_t bucket_flushes(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  std::uint64_t count = 0;
  for (const ev::Event& event : store.instants(rank, window.begin_ns, window.end_ns)) {
    if (event.kind == EventKind::bucket_flush) ++count;
  }
  return count;
}

RankStep digest_rank(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  RankStep result;
  result.rank = rank;
  result.begin_ns = window.begin_ns;
  result.end_ns = window.end_ns;
  result.time = partition_time(store, rank, window.begin_ns, window.end_ns);
  result.fetch_wait_ns = fetch_wait(store, rank, window);
  result.bucket_flushes = bucket_flushes(store, rank, window);
  result.gpu = gpu_activity(store, rank, window.begin_ns, window.end_ns);
  return result;
}

}  // namespace

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
  std::optional<VolumeModel> volume;
  if (store.has_tables()) volume.emplace(store.tables());
  bool all = true;
  const std::size_t before = steps_.size();
  while (take_step(store, volume, until_ns)) {
    if (time && std::chrono::steady_clock::now() - begin >= *time) {
      all = false;
      break;
    }
  }
  // Sums over the whole run: not at every look at one that grows.
  if (steps_.size() != before || until_ns == store::Store::kEnd) {
    count_trace_events(store);
    count_checkpoints(store);
  }
  return all;
}

bool Digest::take_step(const store::Store& store, const std::optional<VolumeModel>& volume,
                       std::int64_t until_ns) {
  std::vector<std::pair<std::uint32_t, StepWindow>> windows;
  const std::span<const store::StepRow> rows = store.steps();
  for (const store::RankRow& row : store.ranks()) {
    const store::LaneId host{row.rank, ev::StreamId::host};
    const auto [at, first] = taken_until_.try_emplace(row.rank, store::Store::kBegin);
    // The next step lies before the end of the row after this one; were its begin lost, further on.
    const std::size_t next = steps_.size() + 1;
    std::int64_t until =
        next < rows.size() && rows[next].end_ns != store::kOpen ? rows[next].end_ns : store::Store::kEnd;
    std::optional<StepWindow> window;
    for (;;) {
      store.for_each_span(host, 0, at->second, until, [&](const store::Span& span) {
        if (window || span.kind != EventKind::step_begin || span.begin_ns < at->second) return;
        window = StepWindow{span.a, span.begin_ns, span.end_ns};
      });
      if (window || until == store::Store::kEnd) break;
      until = store::Store::kEnd;
    }
    if (!window || window->end_ns == store::kOpen || window->end_ns > until_ns)
      return false;  // this rank is not there yet
    windows.push_back({row.rank, *window});
  }
  if (windows.empty()) return false;
  StepDigest digest;
  digest.step = windows.front().second.step;
  for (const auto& [rank, window] : windows) {
    digest.ranks.push_back(digest_rank(store, rank, window));
    const Prefetch outcome = prefetch_outcomes(store, rank, window.begin_ns, window.end_ns);
    digest.prefetch.early += outcome.early;
    digest.prefetch.just_in_time += outcome.just_in_time;
    digest.prefetch.late += outcome.late;
    digest.prefetch.late_wait_ns += outcome.late_wait_ns;
    digest.prefetch.mistargeted += outcome.mistargeted;
    digest.prefetch.unused += outcome.unused;
    note_waits(store, rank, window);
  }
  digest.ops = collectives_of_step(store, digest.ranks);
  const auto& [first_rank, first_window] = windows.front();
  if (volume) {
    digest.volume =
        volume->parts(store, first_rank, first_window.step, first_window.begin_ns, first_window.end_ns);
  }
  steps_.push_back(std::move(digest));
  for (const auto& [rank, window] : windows)
    taken_until_[rank] = std::max(window.end_ns, window.begin_ns + 1);
  return true;
}

void Digest::note_waits(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  const auto length = [](const Wait& wait) { return wait.span.end_ns - wait.span.begin_ns; };
  for_each_span(
      store, {rank, ev::StreamId::compute}, window.begin_ns, window.end_ns, [&](const store::Span& span) {
        const bool wait = span.kind == EventKind::fetch_wait_begin ||
                          span.kind == EventKind::reduce_wait_begin ||
                          span.kind == EventKind::deferred_wait_begin;
        if (!wait || span.end_ns == store::kOpen || span.begin_ns < window.begin_ns) return;
        const Wait found{rank, span};
        if (longest_waits_.size() == kLongestWaits) {
          if (length(found) <= length(longest_waits_.back())) return;
          longest_waits_.pop_back();
        }
        const auto at = std::upper_bound(longest_waits_.begin(), longest_waits_.end(), found,
                                         [&](const Wait& a, const Wait& b) { return length(a) > length(b); });
        longest_waits_.insert(at, found);
      });
}

void Digest::count_trace_events(const store::Store& store) {
  trace_record_ = trace_complete_ = trace_invalidated_ = 0;
  for (const store::RankRow& row : store.ranks()) {
    const auto count = [&](plan::TraceMode mode) {
      return store.instant_count(row.rank, EventKind::trace_mode, static_cast<std::uint8_t>(mode));
    };
    trace_record_ += count(plan::TraceMode::record);
    trace_complete_ += count(plan::TraceMode::complete);
    trace_invalidated_ += store.instant_count(row.rank, EventKind::trace_invalidated);
  }
}

void Digest::count_checkpoints(const store::Store& store) {
  for (const store::SpanTotal& total : store.span_totals()) {
    if (total.kind != EventKind::phase_begin || total.lane.stream != ev::StreamId::compute) continue;
    Checkpoints sum = checkpoints(total.lane.rank);
    if (total.code == static_cast<std::uint8_t>(ev::Phase::checkpoint_save)) {
      sum.saves = static_cast<std::uint32_t>(total.count);
      sum.save_ns = total.total_ns;
    } else if (total.code == static_cast<std::uint8_t>(ev::Phase::checkpoint_load)) {
      sum.loads = static_cast<std::uint32_t>(total.count);
      sum.load_ns = total.total_ns;
    } else {
      continue;
    }
    checkpoints_[total.lane.rank] = sum;
  }
}

Checkpoints Digest::checkpoints(std::uint32_t rank) const {
  const auto found = checkpoints_.find(rank);
  return found == checkpoints_.end() ? Checkpoints{} : found->second;
}

}  // namespace shardscope::analysis
