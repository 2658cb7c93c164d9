// The partition of a rank's time (metrics.md 2.2) and its inputs.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/framework.h"
#include "app/analysis/intervals.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/spans.h"
#include "app/analysis/summary.h"
#include "app/analysis/unrecorded.h"
#include "app/store/lane.h"
#include "instrumentation/capability.h"

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

/// The activity of a rank's lanes in an interval, including spans whose begin is missing.
class Lanes {
 public:
  Lanes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
        const IntervalSet& missing)
      : store_(store),
        rank_(rank),
        begin_ns_(begin_ns),
        end_ns_(end_ns),
        remainders_(remainders(store, rank, missing, begin_ns, end_ns)) {}
  [[nodiscard]] const IntervalSet& doubtful() const noexcept { return remainders_.doubtful; }
  /// Calls visit(kind, interval).
  template <typename Visitor>
  void for_each(StreamId stream, Visitor&& visit) const {
    for_each_span(store_, {rank_, stream}, begin_ns_, end_ns_, [&](const store::Span& span) {
      visit(span.kind, Interval{span.begin_ns, span.end_ns});
    });
    for (const Remainder& one : remainders_.spans) {
      if (one.stream == stream) visit(one.begin, one.interval);
    }
  }
  [[nodiscard]] IntervalSet busy(std::initializer_list<StreamId> streams, EventKind kind) const {
    std::vector<Interval> intervals;
    for (const StreamId stream : streams) {
      for_each(stream, [&](EventKind of, const Interval& interval) {
        if (of == kind) intervals.push_back(interval);
      });
    }
    return IntervalSet(std::move(intervals)).clip(begin_ns_, end_ns_);
  }
  [[nodiscard]] IntervalSet device() const;
  /// The CPU optimizer of offloaded states, which is work of the rank as well.
  [[nodiscard]] IntervalSet worker() const;
  /// Whether forward and backward were recorded, in the device's time. With optimizer steps only, the rest
  /// would count as idle time and its communication as exposed.
  [[nodiscard]] bool computes() const;

 private:
  const store::Store& store_;
  std::uint32_t rank_;
  std::int64_t begin_ns_, end_ns_;
  Remainders remainders_;
};

bool Lanes::computes() const {
  if (!store_.has_tables()) return true;
  if (has_times_of_host(store_.tables())) return gpu_known(store_, rank_, begin_ns_, end_ns_);
  if (!store::may_lack_modules(store_.tables()) || gpu_known(store_, rank_, begin_ns_, end_ns_)) return true;
  bool found = false;
  for_each(StreamId::compute, [&](EventKind kind, const Interval&) {
    found = found || kind == EventKind::module_begin || kind == EventKind::kernel_begin;
  });
  return found;
}

/// Activity of the GPU's compute stream if completely recorded; else kernel spans if recorded; else module
/// and optimizer spans minus the waits inside them (the span of a container includes the waits of its
/// children) and minus collectives whose calls held the host.
IntervalSet Lanes::device() const {
  std::vector<Interval> kernels, work, waits;
  if (gpu_known(store_, rank_, begin_ns_, end_ns_))
    return busy({StreamId::gpu_compute}, EventKind::gpu_begin);
  for_each(StreamId::compute, [&](EventKind kind, const Interval& interval) {
    if (kind == EventKind::kernel_begin) {
      kernels.push_back(interval);
    } else if (store::is_wait(kind)) {
      waits.push_back(interval);
    } else if (is_work(kind)) {
      work.push_back(interval);
    }
  });
  for (const StreamId stream : {StreamId::gather, StreamId::reduce}) {
    for_each_span(store_, {rank_, stream}, begin_ns_, end_ns_, [&](const store::Span& span) {
      if (span.kind == EventKind::collective_begin &&
          ev::as<EventKind::collective_begin>(span).code.holds_host())
        waits.push_back({span.begin_ns, span.end_ns});
    });
  }
  IntervalSet device = IntervalSet(std::move(kernels));
  // If the level of detail changed, module spans fill the intervals without kernels.
  const bool any_kernel = device.length() > 0;
  const IntervalSet without_kernels =
      any_kernel ? unrecorded(store_, rank_, begin_ns_, end_ns_, ev::Detail::kernels) : IntervalSet();
  if (!any_kernel || without_kernels.length() > 0) {
    const IntervalSet modules = IntervalSet(std::move(work)).subtract(IntervalSet(std::move(waits)));
    device = any_kernel ? device.unite(modules.intersect(without_kernels)) : modules;
  }
  return device.clip(begin_ns_, end_ns_);
}

IntervalSet Lanes::worker() const {
  std::vector<Interval> host;
  for_each(StreamId::worker, [&](EventKind kind, const Interval& interval) {
    if (is_work(kind)) host.push_back(interval);
  });
  return IntervalSet(std::move(host))
      .subtract(update_waits(store_, rank_, begin_ns_, end_ns_))
      .clip(begin_ns_, end_ns_);
}

}  // namespace

/// [Note: an update that waits for its states]
/// The span of a sub-group's update begins when the worker starts it and ends when it is done: states on NVMe
/// are read first and written last. The CPU computes neither during these transfers nor before the first read
/// begins, while the disk is busy with another sub-group.
IntervalSet update_waits(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                         std::int64_t end_ns) {
  std::map<std::uint32_t, std::vector<Interval>> moved, read;  // by sub-group
  for_each_span(store, {rank, StreamId::nvme}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind != EventKind::transfer_begin) return;
    const auto fields = ev::as<EventKind::transfer_begin>(span);
    if (fields.sub_group == ev::kNoId) return;
    moved[fields.sub_group].push_back({span.begin_ns, span.end_ns});
    if (fields.transfer == ev::TransferKind::nvme_read)
      read[fields.sub_group].push_back({span.begin_ns, span.end_ns});
  });
  std::vector<Interval> waits;
  if (moved.empty()) return IntervalSet();
  for_each_span(store, {rank, StreamId::worker}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind != EventKind::optimizer_begin) return;
    const std::uint32_t group = ev::as<EventKind::optimizer_begin>(span).sub_group;
    for (const Interval& one : moved[group])
      waits.push_back({std::max(one.begin, span.begin_ns), std::min(one.end, span.end_ns)});
    std::int64_t first = span.end_ns;
    for (const Interval& one : read[group]) {
      if (one.end > span.begin_ns) first = std::min(first, one.begin);
    }
    if (first < span.end_ns) waits.push_back({span.begin_ns, first});
  });
  std::erase_if(waits, [](const Interval& one) { return one.begin >= one.end; });
  return IntervalSet(std::move(waits)).clip(begin_ns, end_ns);
}

void TimePartition::add(const TimePartition& other) noexcept {
  checkpoint_ns += other.checkpoint_ns;
  compute_ns += other.compute_ns;
  exposed_comm_ns += other.exposed_comm_ns;
  exposed_copy_ns += other.exposed_copy_ns;
  idle_ns += other.idle_ns;
  unrecorded_ns += other.unrecorded_ns;
  total_ns += other.total_ns;
  comm_ns += other.comm_ns;
}

std::optional<double> TimePartition::overlap_pct() const {
  if (!known() || comm_ns <= 0) return std::nullopt;
  return 100.0 * (1.0 - static_cast<double>(exposed_comm_ns) / static_cast<double>(comm_ns));
}

RankActivity activity_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                         std::int64_t end_ns) {
  RankActivity out;
  out.rank = rank;
  out.window = {begin_ns, end_ns};
  out.paused = paused(store, rank, begin_ns, end_ns);
  out.checkpoint = checkpoints(store, rank, begin_ns, end_ns).subtract(out.paused);
  const IntervalSet counted = out.paused.unite(out.checkpoint);
  const IntervalSet gone = unrecorded(store, rank, begin_ns, end_ns, ev::Detail::modules).subtract(counted);
  const Lanes lanes(store, rank, begin_ns, end_ns, gone);
  out.device = lanes.device().subtract(counted.unite(gone));
  out.compute = out.device.unite(lanes.worker().subtract(counted.unite(gone)));
  out.missing = gone.unite(lanes.doubtful().subtract(out.compute).subtract(counted));
  out.known = lanes.computes() && out.compute.length() > 0;
  if (!out.known) return out;
  const IntervalSet elsewhere = counted.unite(out.missing);
  const bool has_tables = store.has_tables();
  if (has_tables && has_times_of_host(store.tables())) {
    out.comm =
        lanes.busy({StreamId::gpu_gather, StreamId::gpu_reduce}, EventKind::gpu_begin).subtract(elsewhere);
    out.copy = lanes.busy({StreamId::gpu_copy}, EventKind::gpu_begin).subtract(elsewhere);
  } else {
    out.comm =
        lanes.busy({StreamId::gather, StreamId::reduce, StreamId::compute}, EventKind::collective_begin)
            .subtract(elsewhere);
    out.copy = lanes.busy({StreamId::copy, StreamId::nvme}, EventKind::transfer_begin).subtract(elsewhere);
    // Without recorded collectives, time without computation may be communication.
    if (has_tables && ev::why_not_recorded(store.tables(), ev::Capability::collectives))
      out.missing = out.missing.unite(IntervalSet({out.window}).subtract(counted.unite(out.compute)));
  }
  out.data = lanes.busy({StreamId::compute}, EventKind::data_wait_begin).subtract(elsewhere);
  std::vector<Interval> forward, backward, optimizer;
  for_each_span(store, {rank, StreamId::compute}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind != EventKind::phase_begin) return;
    const ev::Phase phase = ev::as<EventKind::phase_begin>(span).phase;
    if (phase == ev::Phase::forward) forward.push_back({span.begin_ns, span.end_ns});
    if (phase == ev::Phase::backward) backward.push_back({span.begin_ns, span.end_ns});
    if (phase == ev::Phase::optimizer) optimizer.push_back({span.begin_ns, span.end_ns});
  });
  out.forward = IntervalSet(std::move(forward));
  out.backward = IntervalSet(std::move(backward));
  out.optimizer = IntervalSet(std::move(optimizer));
  for_each_collective(store, rank, begin_ns, end_ns, [&](StreamId stream, const store::Span& span) {
    const auto fields = ev::as<EventKind::collective_begin>(span);
    const auto group = collective_ranks(store, rank, span);
    const std::uint64_t key =
        group && group->count > 1 && group->count < store.tables().world ? group->key() : 0;
    if (key != 0 && !out.groups.contains(key)) out.groups.emplace(key, group->list());
    out.collectives.push_back({instance_of(store, rank, stream, span),
                               {span.begin_ns, span.end_ns},
                               all_ranks_entered(span) ? span.mark_ns : 0,
                               fields.op,
                               stream,
                               fields.group,
                               key});
  });
  return out;
}

TimePartition partition_of(const RankActivity& activity) {
  TimePartition result;
  const IntervalSet window = IntervalSet({activity.window}).subtract(activity.paused);
  result.total_ns = window.length();
  result.checkpoint_ns = activity.checkpoint.length();
  result.compute_ns = activity.known ? activity.compute.length() : 0;
  if (!result.known()) {
    result.unrecorded_ns = result.total_ns - result.checkpoint_ns;
    return result;
  }
  const IntervalSet& comp = activity.compute;
  const IntervalSet& comm = activity.comm;
  const IntervalSet& copy = activity.copy;
  const IntervalSet elsewhere = activity.paused.unite(activity.checkpoint).unite(activity.missing);
  result.unrecorded_ns = activity.missing.length();
  result.comm_ns = comm.length();
  result.exposed_comm_ns = comm.subtract(comp).length();
  result.exposed_copy_ns = copy.subtract(comp).subtract(comm).length();
  result.idle_ns = window.subtract(elsewhere).subtract(comp.unite(comm).unite(copy)).length();
  return result;
}

TimePartition partition_time(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                             std::int64_t end_ns) {
  return partition_of(activity_of(store, rank, begin_ns, end_ns));
}

}  // namespace shardscope::analysis
