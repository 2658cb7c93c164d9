#include "app/store/own_time.h"

#include <algorithm>
#include <span>
#include <utility>

#include "app/store/checkpoint_span.h"
#include "app/store/framework.h"
#include "app/store/lane.h"
#include "instrumentation/capability.h"
#include "instrumentation/event_fields.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
using ev::StreamId;

bool detail_changed(const RankState& state) {
  const std::vector<InstantCount> counts = state.instant_counts();
  return std::ranges::any_of(
      counts, [](const InstantCount& count) { return count.kind == EventKind::detail_changed; });
}

/// Calls visit(stream, span) for the ended spans.
template <typename Visitor>
void for_each_ended(const RankState& state, Visitor visit) {
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    const Lane& lane = state.lanes()[s];
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      const std::span<const Span> spans = lane.spans(d);
      for (const Span& span : spans.first(spans.size() - (d < lane.open_count() ? 1 : 0)))
        visit(static_cast<StreamId>(s), span);
    }
  }
}

}  // namespace

OwnTimeSource OwnTimeSource::of(const ev::RunTables& tables) {
  return {.of_host = has_times_of_host(tables),
          .of_gpu = tables.device.starts_with("cuda"),
          .may_lack_modules = store::may_lack_modules(tables),
          .collectives = !ev::why_not_recorded(tables, ev::Capability::collectives)};
}

void OwnTimeOfRank::take_span(StreamId stream, const Span& span) {
  const auto add = [&](Part part) { fresh_[part].push_back({span.begin_ns, span.end_ns}); };
  const bool on_compute = stream == StreamId::compute;
  switch (span.kind) {
    case EventKind::step_begin:
      held_.push_back({ev::as<EventKind::step_begin>(span).step, {span.begin_ns, span.end_ns}});
      return;
    case EventKind::paused_begin:
      if (stream == StreamId::host) add(elsewhere);
      return;
    case EventKind::phase_begin:
      if (on_compute && is_checkpoint(span)) add(elsewhere);
      return;
    case EventKind::collective_begin:
      if (on_compute || stream == StreamId::gather || stream == StreamId::reduce) add(comm);
      if (ev::as<EventKind::collective_begin>(span).code.holds_host()) add(waits);
      return;
    case EventKind::kernel_begin:
      if (on_compute) add(kernels);
      return;
    case EventKind::module_begin:
      if (on_compute) add(modules);
      [[fallthrough]];
    case EventKind::optimizer_begin:
      if (on_compute) add(work);
      if (stream == StreamId::worker) add(worker);
      return;
    case EventKind::gpu_begin:
      if (stream == StreamId::gpu_compute) add(gpu_compute);
      if (stream == StreamId::gpu_gather || stream == StreamId::gpu_reduce) add(gpu_comm);
      return;
    case EventKind::gpu_records_begin:
      return add(records);
    default:
      if (on_compute && is_wait(span.kind)) add(waits);
  }
}

void OwnTimeOfRank::forget_before(std::int64_t ns) {
  for (IntervalSet& part : parts_) part = part.clip(ns, INT64_MAX);
}

std::size_t OwnTimeOfRank::pending() const {
  std::size_t out = 0;
  for (const IntervalSet& part : parts_) out += part.intervals().size();
  return out;
}

std::optional<OwnTime> OwnTimeOfRank::measure(const Held& held, const OwnTimeSource& source) const {
  if (held.at.begin < lacking_until_ns_ || !source.collectives) return std::nullopt;
  const auto in_step = [&](Part part) { return parts_[part].clip(held.at.begin, held.at.end); };
  const bool by_gpu = in_step(records).length() == held.at.end - held.at.begin;
  if (source.of_host && !by_gpu) return std::nullopt;
  IntervalSet compute = by_gpu ? in_step(gpu_compute) : in_step(kernels);
  if (!by_gpu) {
    // Forward and backward are unknown: all but the optimizer would count as communication or idle.
    if (source.may_lack_modules && compute.length() == 0 && in_step(modules).length() == 0)
      return std::nullopt;
    if (compute.length() == 0) compute = in_step(work).subtract(in_step(waits));
  }
  compute = compute.unite(in_step(worker));
  const IntervalSet communication = in_step(source.of_host ? gpu_comm : comm);
  const IntervalSet apart = in_step(elsewhere);
  // Recorded without modules: the rank's computation is unknown.
  if (compute.subtract(apart).length() == 0) return std::nullopt;
  const std::int64_t waited = communication.subtract(compute).subtract(apart).length();
  const std::int64_t step = IntervalSet({held.at}).subtract(apart).length();
  return OwnTime{.step = held.step, .own_ns = step - waited, .waited_ns = waited};
}

std::vector<OwnTime> OwnTimeOfRank::measure_first(std::size_t count, const OwnTimeSource& source) {
  std::vector<OwnTime> out;
  for (const Held& held : std::span(held_).first(count)) {
    if (const auto known = measure(held, source)) out.push_back(*known);
  }
  if (count > 0) forget_before(held_[count - 1].at.end);
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
  return out;
}

std::vector<OwnTime> OwnTimeOfRank::take(const RankState& state, const OwnTimeSource& source, bool gap) {
  const std::size_t before = held_.size();
  std::int64_t last_ns = INT64_MIN;
  for (const Lane& lane : state.lanes()) last_ns = std::max(last_ns, lane.last_ns());
  for_each_ended(state, [&](StreamId stream, const Span& span) { take_span(stream, span); });
  // Where in the block events are missing is not determined: none of its steps is known.
  if (gap || detail_changed(state)) lacking_until_ns_ = std::max(lacking_until_ns_, last_ns);
  for (std::size_t part = 0; part < kParts; ++part) {
    if (fresh_[part].empty()) continue;
    parts_[part] = parts_[part].unite(IntervalSet(std::move(fresh_[part])));
    fresh_[part].clear();
  }
  std::size_t ready = before;
  if (source.of_gpu) {
    ready = held_.size() > kMostHeld ? held_.size() - kMostHeld : 0;
    while (ready < held_.size() && held_[ready].at.end <= lacking_until_ns_) ++ready;
    const std::vector<Interval>& known = parts_[records].intervals();
    if (!known.empty())
      while (ready < held_.size() && held_[ready].at.end <= known.back().end) ++ready;
  }
  std::vector<OwnTime> out = measure_first(ready, source);
  // The oldest of the steps that wait for GPU records are measured without them.
  while (!held_.empty() && pending() > kMostPending) {
    for (const OwnTime& time : measure_first(1, source)) out.push_back(time);
  }
  if (pending() > kMostPending) {
    // A step without an end, or with too many spans: it is unknown, and its spans are dropped.
    forget_before(last_ns);
    lacking_until_ns_ = std::max(lacking_until_ns_, last_ns);
  }
  return out;
}

std::vector<OwnTime> OwnTimeOfRank::rest(const OwnTimeSource& source) {
  return measure_first(held_.size(), source);
}

}  // namespace shardscope::store
