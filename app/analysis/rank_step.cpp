#include "app/analysis/rank_step.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "app/analysis/communication.h"
#include "app/analysis/coordinator.h"
#include "app/analysis/gpu_activity.h"
#include "app/store/framework.h"
#include "app/store/span_time.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;

struct Waits {
  std::int64_t fetch_ns = 0;
  std::optional<std::int64_t> data_ns;
};

Waits waits(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  Waits sum;
  const IntervalSet missing = unrecorded(store, rank, window.begin_ns, window.end_ns, ev::Detail::modules);
  if (missing.length() > 0) {
    std::vector<Interval> fetch, data;
    const auto take = [&](EventKind kind, const Interval& interval) {
      if (kind == EventKind::fetch_wait_begin) fetch.push_back(interval);
      if (kind == EventKind::data_wait_begin) data.push_back(interval);
    };
    for_each_span(store, {rank, ev::StreamId::compute}, window.begin_ns, window.end_ns,
                  [&](const store::Span& span) {
                    if (span.end_ns != store::kOpen) take(span.kind, {span.begin_ns, span.end_ns});
                  });
    for (const Remainder& one : remainders(store, rank, missing, window.begin_ns, window.end_ns).spans) {
      if (one.stream == ev::StreamId::compute) take(one.begin, one.interval);
    }
    const auto recorded = [&](std::vector<Interval> of) {
      return IntervalSet(std::move(of)).clip(window.begin_ns, window.end_ns).subtract(missing).length();
    };
    if (!data.empty()) sum.data_ns = recorded(std::move(data));
    sum.fetch_ns = recorded(std::move(fetch));
    return sum;
  }
  for_each_span(store, {rank, ev::StreamId::compute}, window.begin_ns, window.end_ns,
                [&](const store::Span& span) {
                  const bool fetch = span.kind == EventKind::fetch_wait_begin;
                  const bool data = span.kind == EventKind::data_wait_begin;
                  if ((!fetch && !data) || span.end_ns == store::kOpen) return;
                  const std::int64_t ns =
                      store::time_within(store, rank, span, window.begin_ns, window.end_ns).running_ns;
                  if (fetch) {
                    sum.fetch_ns += ns;
                  } else {
                    sum.data_ns = sum.data_ns.value_or(0) + ns;
                  }
                });
  return sum;
}

/// Device time of forwards that the backward repeats. Module spans nest: count the union.
std::int64_t recomputed(const store::Store& store, const StepWindow& window, const RankActivity& activity) {
  const bool by_gpu = gpu_known(store, activity.rank, window.begin_ns, window.end_ns);
  std::vector<Interval> found;
  for_each_span(store, {activity.rank, by_gpu ? ev::StreamId::gpu_compute : ev::StreamId::compute},
                window.begin_ns, window.end_ns, [&](const store::Span& span) {
                  const bool repeats =
                      by_gpu ? span.kind == EventKind::gpu_begin &&
                                   ev::as<EventKind::gpu_begin>(span).owner_kind == ev::GpuOwner::recompute
                             : span.kind == EventKind::module_begin &&
                                   ev::as<EventKind::module_begin>(span).pass == ev::Pass::recompute;
                  if (repeats && span.end_ns != store::kOpen) found.push_back({span.begin_ns, span.end_ns});
                });
  return activity.device.intersect(IntervalSet(std::move(found))).length();
}

void read_instants(const store::Store& store, const StepWindow& window, RankStep& out) {
  constexpr std::array kRead{EventKind::bucket_flush, EventKind::allocator_state, EventKind::processor_wait,
                             EventKind::gpu_sample};
  if (std::ranges::none_of(kRead, [&](EventKind kind) { return store.instant_count(out.rank, kind) > 0; }))
    return;  // avoids reading blocks
  store.for_each_instant(out.rank, window.begin_ns, window.end_ns, [&](const ev::Event& event) {
    if (event.kind == EventKind::bucket_flush) ++out.bucket_flushes;
    if (event.kind == EventKind::allocator_state)
      out.allocator_retries = ev::as<EventKind::allocator_state>(event).retries;
    if (event.kind == EventKind::gpu_sample) out.gpu_state.add(event);
    if (event.kind == EventKind::processor_wait) {
      const auto sample = ev::as<EventKind::processor_wait>(event);
      if (!out.processor_waits) out.processor_waits.emplace();
      out.processor_waits->add({sample.waited_ns, sample.over_ns, sample.switches});
    }
  });
}

/// Adds the waits that begin in the window to `longest`.
void note_waits(const store::Store& store, std::uint32_t rank, const StepWindow& window,
                LongestWaits& longest) {
  for_each_span(store, {rank, ev::StreamId::compute}, window.begin_ns, window.end_ns,
                [&](const store::Span& span) {
                  const bool wait = span.kind == EventKind::fetch_wait_begin ||
                                    span.kind == EventKind::reduce_wait_begin ||
                                    span.kind == EventKind::deferred_wait_begin;
                  if (!wait || span.end_ns == store::kOpen || span.begin_ns < window.begin_ns) return;
                  longest.add({rank, span, store::time_of(store, rank, span).running_ns});
                });
}

RankStep digest_rank(const store::Store& store, std::uint32_t rank, const StepWindow& window,
                     const RankActivity& activity) {
  RankStep result;
  result.rank = rank;
  result.begin_ns = window.begin_ns;
  result.end_ns = window.end_ns;
  result.time = partition_of(activity);
  result.recorded = recorded_in(store, rank, window.begin_ns, window.end_ns);
  const Waits waited = waits(store, rank, window);
  result.fetch_wait_ns = waited.fetch_ns;
  result.data_wait_ns = waited.data_ns;
  read_instants(store, window, result);
  if (activity.known && store.has_tables() && store::framework_of(store.tables()) != store::Framework::zero)
    result.recompute_ns = recomputed(store, window, activity);
  result.fetch_counters = fetch_counters(store, rank, window.begin_ns, window.end_ns);
  result.gpu = gpu_activity(store, rank, window.begin_ns, window.end_ns);
  return result;
}

std::size_t bytes_of(const IntervalSet& set) noexcept {
  return set.intervals().capacity() * sizeof(Interval);
}

}  // namespace

std::size_t RankReading::bytes() const noexcept {
  std::size_t bytes = sizeof *this + micro_batches.capacity() * sizeof(MicroBatch) +
                      collectives.capacity() * sizeof(CollectiveTimes::Own) +
                      waits.capacity() * sizeof(Wait) +
                      activity.collectives.capacity() * sizeof(Participation);
  for (const IntervalSet* set : {&activity.paused, &activity.checkpoint, &activity.missing, &activity.device,
                                 &activity.compute, &activity.comm, &activity.copy, &activity.data,
                                 &activity.forward, &activity.backward, &activity.optimizer})
    bytes += bytes_of(*set);
  return bytes;
}

RankReading read_step(const store::Store& store, std::uint32_t rank, const StepWindow& window) {
  RankReading out;
  out.window = window;
  out.activity = activity_of(store, rank, window.begin_ns, window.end_ns);
  out.step = digest_rank(store, rank, window, out.activity);
  out.micro_batches = micro_batches(store, rank, window.begin_ns, window.end_ns);
  for (const MicroBatch& one : out.micro_batches) out.step.micro_batches.add(one);
  out.collectives = CollectiveTimes::read(store, out.step);
  out.prefetch = prefetch_outcomes(store, rank, window.begin_ns, window.end_ns);
  LongestWaits longest;
  note_waits(store, rank, window, longest);
  out.waits = longest.all();
  return out;
}

std::optional<StepWindow> step_from(const store::Store& store, std::uint32_t rank, std::int64_t from_ns,
                                    std::int64_t until_ns) {
  const std::span<const store::StepRow> rows = store.steps();
  // The next step begins before the end of the row after this one, or later if its begin was lost.
  const auto row = std::partition_point(rows.begin(), rows.end(),
                                        [&](const store::StepRow& r) { return r.begin_ns < from_ns; });
  const std::size_t next = static_cast<std::size_t>(row - rows.begin()) + 1;
  std::int64_t until =
      next < rows.size() && rows[next].end_ns != store::kOpen ? rows[next].end_ns : store::Store::kEnd;
  std::optional<StepWindow> window;
  for (;;) {
    store.for_each_span({rank, ev::StreamId::host}, 0, from_ns, until, [&](const store::Span& span) {
      if (window || span.kind != EventKind::step_begin || span.begin_ns < from_ns) return;
      window = StepWindow{ev::as<EventKind::step_begin>(span).step, span.begin_ns, span.end_ns};
    });
    if (window || until == store::Store::kEnd) break;
    until = store::Store::kEnd;
  }
  if (!window || window->end_ns == store::kOpen || window->end_ns > until_ns) return std::nullopt;
  return window;
}

}  // namespace shardscope::analysis
