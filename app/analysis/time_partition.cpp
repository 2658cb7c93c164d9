// The partition of a rank's time (metrics.md 2.2) and what it is made of.
#include "app/analysis/intervals.h"
#include "app/analysis/spans.h"
#include "app/analysis/summary.h"
#include "app/store/lane.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

bool is_work(EventKind kind) { return kind == EventKind::module_begin || kind == EventKind::optimizer_begin; }

IntervalSet paused(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                   std::int64_t end_ns) {
  std::vector<Interval> intervals;
  for_each_span(store, {rank, StreamId::host}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind == EventKind::paused_begin) intervals.push_back({span.begin_ns, span.end_ns});
  });
  return IntervalSet(std::move(intervals)).clip(begin_ns, end_ns);
}

IntervalSet checkpoints(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                        std::int64_t end_ns) {
  std::vector<Interval> intervals;
  for_each_span(store, {rank, StreamId::compute}, begin_ns, end_ns, [&](const store::Span& span) {
    if (is_checkpoint(span)) intervals.push_back({span.begin_ns, span.end_ns});
  });
  return IntervalSet(std::move(intervals)).clip(begin_ns, end_ns);
}

IntervalSet worker(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                   std::int64_t end_ns) {
  std::vector<Interval> intervals;
  for_each_span(store, {rank, StreamId::worker}, begin_ns, end_ns, [&](const store::Span& span) {
    if (is_work(span.kind)) intervals.push_back({span.begin_ns, span.end_ns});
  });
  return IntervalSet(std::move(intervals));
}

/// What the GPU's compute stream did, where all of it is known; kernel spans where they were recorded;
/// otherwise module and optimizer spans without the waits inside them (a container's span covers the waits of
/// its children).
IntervalSet compute(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                    std::int64_t end_ns) {
  // The CPU optimizer of offloaded states is the rank's work as well.
  const IntervalSet host = worker(store, rank, begin_ns, end_ns);
  std::vector<Interval> kernels, work, waits;
  if (gpu_known(store, rank, begin_ns, end_ns)) {
    for_each_span(store, {rank, StreamId::gpu_compute}, begin_ns, end_ns, [&](const store::Span& span) {
      if (span.kind == EventKind::gpu_begin) kernels.push_back({span.begin_ns, span.end_ns});
    });
    return IntervalSet(std::move(kernels)).unite(host).clip(begin_ns, end_ns);
  }
  for_each_span(store, {rank, StreamId::compute}, begin_ns, end_ns, [&](const store::Span& span) {
    const Interval interval{span.begin_ns, span.end_ns};
    if (span.kind == EventKind::kernel_begin) {
      kernels.push_back(interval);
    } else if (store::is_wait(span.kind)) {
      waits.push_back(interval);
    } else if (is_work(span.kind)) {
      work.push_back(interval);
    }
  });
  const IntervalSet device = kernels.empty()
                                 ? IntervalSet(std::move(work)).subtract(IntervalSet(std::move(waits)))
                                 : IntervalSet(std::move(kernels));
  return device.unite(host).clip(begin_ns, end_ns);
}

template <typename... Streams>
IntervalSet busy(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                 EventKind kind, Streams... streams) {
  std::vector<Interval> intervals;
  for (StreamId stream : {streams...}) {
    for_each_span(store, {rank, stream}, begin_ns, end_ns, [&](const store::Span& span) {
      if (span.kind == kind) intervals.push_back({span.begin_ns, span.end_ns});
    });
  }
  return IntervalSet(std::move(intervals)).clip(begin_ns, end_ns);
}

}  // namespace

void TimePartition::add(const TimePartition& other) noexcept {
  checkpoint_ns += other.checkpoint_ns;
  compute_ns += other.compute_ns;
  exposed_comm_ns += other.exposed_comm_ns;
  exposed_copy_ns += other.exposed_copy_ns;
  idle_ns += other.idle_ns;
  total_ns += other.total_ns;
  comm_ns += other.comm_ns;
}

std::optional<double> TimePartition::overlap_pct() const {
  if (!known() || comm_ns <= 0) return std::nullopt;
  return 100.0 * (1.0 - static_cast<double>(exposed_comm_ns) / static_cast<double>(comm_ns));
}

TimePartition partition_time(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                             std::int64_t end_ns) {
  const IntervalSet pause = paused(store, rank, begin_ns, end_ns);
  const IntervalSet window = IntervalSet({{begin_ns, end_ns}}).subtract(pause);
  const IntervalSet checkpoint = checkpoints(store, rank, begin_ns, end_ns).subtract(pause);
  const IntervalSet elsewhere = pause.unite(checkpoint);
  const IntervalSet comp = compute(store, rank, begin_ns, end_ns).subtract(elsewhere);
  const IntervalSet comm = busy(store, rank, begin_ns, end_ns, EventKind::collective_begin, StreamId::gather,
                                StreamId::reduce, StreamId::compute)
                               .subtract(elsewhere);
  const IntervalSet copy =
      busy(store, rank, begin_ns, end_ns, EventKind::transfer_begin, StreamId::copy, StreamId::nvme)
          .subtract(elsewhere);

  TimePartition result;
  result.total_ns = window.length();
  result.checkpoint_ns = checkpoint.length();
  result.compute_ns = comp.length();
  result.comm_ns = comm.length();
  result.exposed_comm_ns = comm.subtract(comp).length();
  result.exposed_copy_ns = copy.subtract(comp).subtract(comm).length();
  result.idle_ns = window.subtract(checkpoint).subtract(comp.unite(comm).unite(copy)).length();
  return result;
}

}  // namespace shardscope::analysis
