#include "app/analysis/stream_waits.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/analysis/gpu_spans.h"
#include "instrumentation/capability.h"

namespace shardscope::analysis {
namespace {

using ev::StreamId;

/// A waiting kernel begins this soon after what it waited for: the event is seen, and the kernel launched, by
/// the device.
constexpr std::int64_t kResumeNs = 20'000;

/// A wait, and the kernel that waited.
struct Waited {
  GpuWait wait;
  store::Span kernel;
};

/// Ends of a lane's kernels, in order.
std::vector<std::int64_t> ends_of(const store::Store& store, store::LaneId lane, Interval window) {
  std::vector<std::int64_t> ends;
  for (const store::Span& span : gpu_spans(store, lane, window)) {
    if (span.end_ns != store::kOpen) ends.push_back(span.end_ns);
  }
  std::ranges::sort(ends);
  return ends;
}

/// The last end in (`after`, `until`], at most kResumeNs before `until`.
std::optional<std::int64_t> last_end(const std::vector<std::int64_t>& ends, std::int64_t after,
                                     std::int64_t until) {
  const auto next = std::ranges::upper_bound(ends, until);
  if (next == ends.begin()) return std::nullopt;
  const std::int64_t end = *std::prev(next);
  return end > after && until - end <= kResumeNs ? std::optional(end) : std::nullopt;
}

std::vector<Waited> waits_of(const store::Store& store, std::uint32_t rank, Interval window) {
  std::vector<Waited> out;
  const ev::RunTables& tables = store.tables();
  const auto lacks = [&](ev::Capability what) { return ev::why_not_recorded(tables, what).has_value(); };
  std::vector<std::pair<GapCause, std::vector<std::int64_t>>> awaited;
  if (lacks(ev::Capability::fetch_waits))
    awaited.emplace_back(GapCause::waiting_for_gather, ends_of(store, {rank, StreamId::gpu_gather}, window));
  if (lacks(ev::Capability::reduce_waits))
    awaited.emplace_back(GapCause::waiting_for_reduce, ends_of(store, {rank, StreamId::gpu_reduce}, window));
  if (awaited.empty()) return out;
  std::int64_t idle_from = window.begin;
  for (const store::Span& kernel : gpu_spans(store, {rank, StreamId::gpu_compute}, window)) {
    const std::int64_t from = std::exchange(idle_from, std::max(idle_from, kernel.end_ns));
    const auto launch = launch_of(kernel);
    if (kernel.begin_ns <= from || !launch) continue;
    const std::int64_t begin = std::max(from, *launch);
    std::optional<GpuWait> last;
    for (const auto& [cause, ends] : awaited) {
      const auto end = last_end(ends, begin, kernel.begin_ns);
      if (end && (!last || *end > last->at.end)) last = GpuWait{{begin, *end}, cause};
    }
    if (last) out.push_back({*last, kernel});
  }
  return out;
}

}  // namespace

std::vector<GpuWait> stream_waits(const store::Store& store, std::uint32_t rank, Interval window) {
  std::vector<GpuWait> out;
  for (const Waited& one : waits_of(store, rank, window)) out.push_back(one.wait);
  return out;
}

std::vector<Interval> reduction_waits_inside_backward(const store::Store& store, std::uint32_t rank,
                                                      Interval window) {
  std::vector<Interval> out;
  for (const Waited& one : waits_of(store, rank, window)) {
    const ev::GpuOwner owner = ev::as<ev::EventKind::gpu_begin>(one.kernel).owner_kind;
    if (one.wait.cause == GapCause::waiting_for_reduce &&
        (owner == ev::GpuOwner::backward || owner == ev::GpuOwner::recompute))
      out.push_back(one.wait.at);
  }
  return out;
}

}  // namespace shardscope::analysis
