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
  for (const ev::Event& event : instants_within(store, rank, window.begin_ns, window.end_ns)) {
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

void Digest::update(const store::Store& store) {
  std::optional<VolumeModel> volume;
  if (store.has_tables()) volume.emplace(store.tables());
  while (take_step(store, volume)) {
  }
  count_trace_events(store);
  count_checkpoints(store);
}

bool Digest::take_step(const store::Store& store, const std::optional<VolumeModel>& volume) {
  std::vector<std::pair<std::uint32_t, StepWindow>> windows;
  std::map<std::uint32_t, std::size_t> next;
  for (const store::RankRow& row : store.ranks()) {
    const auto spans = store.spans({row.rank, ev::StreamId::host}, 0);
    std::size_t at = cursors_[row.rank].span;
    while (at < spans.size() && spans[at].kind != EventKind::step_begin) ++at;
    if (at >= spans.size() || spans[at].end_ns == store::kOpen) return false;  // this rank is not there yet
    windows.push_back({row.rank, {spans[at].a, spans[at].begin_ns, spans[at].end_ns}});
    next[row.rank] = at + 1;
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
  }
  digest.ops = collectives_of_step(store, digest.ranks);
  const auto& [first_rank, first_window] = windows.front();
  if (volume) {
    digest.volume =
        volume->parts(store, first_rank, first_window.step, first_window.begin_ns, first_window.end_ns);
  }
  steps_.push_back(std::move(digest));
  for (const auto& [rank, at] : next) cursors_[rank].span = at;
  return true;
}

void Digest::count_trace_events(const store::Store& store) {
  for (const store::RankRow& row : store.ranks()) {
    const auto instants = store.instants(row.rank);
    std::size_t& at = cursors_[row.rank].instant;
    for (; at < instants.size(); ++at) {
      const ev::Event& event = instants[at];
      if (event.kind == EventKind::trace_invalidated) ++trace_invalidated_;
      if (event.kind != EventKind::trace_mode) continue;
      switch (static_cast<plan::TraceMode>(event.code)) {
        case plan::TraceMode::record:
          ++trace_record_;
          break;
        case plan::TraceMode::complete:
          ++trace_complete_;
          break;
        case plan::TraceMode::invalid:
          break;
      }
    }
  }
}

void Digest::count_checkpoints(const store::Store& store) {
  for (const store::RankRow& row : store.ranks()) {
    const auto spans = store.spans({row.rank, ev::StreamId::compute}, 0);
    std::size_t& at = cursors_[row.rank].phase;
    for (; at < spans.size() && spans[at].end_ns != store::kOpen; ++at) {
      if (!is_checkpoint(spans[at])) continue;
      Checkpoints& sum = checkpoints_[row.rank];
      const bool save = spans[at].code == static_cast<std::uint8_t>(ev::Phase::checkpoint_save);
      ++(save ? sum.saves : sum.loads);
      (save ? sum.save_ns : sum.load_ns) += spans[at].end_ns - spans[at].begin_ns;
    }
  }
}

Checkpoints Digest::checkpoints(std::uint32_t rank) const {
  const auto found = checkpoints_.find(rank);
  return found == checkpoints_.end() ? Checkpoints{} : found->second;
}

}  // namespace shardscope::analysis
