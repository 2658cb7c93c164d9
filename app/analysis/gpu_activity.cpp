#include "app/analysis/gpu_activity.h"

#include <algorithm>
#include <utility>

#include "app/analysis/gpu_spans.h"
#include "app/analysis/spans.h"
#include "app/analysis/stream_waits.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

constexpr std::array kGpuLanes{StreamId::gpu_compute, StreamId::gpu_gather,  StreamId::gpu_reduce,
                               StreamId::gpu_copy,    StreamId::gpu_other_1, StreamId::gpu_other_2,
                               StreamId::gpu_other_3};
/// How far back to search for the work before a gap.
constexpr std::int64_t kLookBackNs = 1'000'000'000;

std::optional<GapCause> cause_of_wait(EventKind kind) {
  switch (kind) {
    case EventKind::fetch_wait_begin:
      return GapCause::waiting_for_gather;
    case EventKind::reduce_wait_begin:
      return GapCause::waiting_for_reduce;
    case EventKind::deferred_wait_begin:
      return GapCause::waiting_for_update;
    case EventKind::data_wait_begin:
      return GapCause::waiting_for_data;
    default:
      return std::nullopt;
  }
}

/// Whether compute's wait of this cause is for the work of `lane`.
bool is_for(GapCause cause, StreamId lane) {
  return (cause == GapCause::waiting_for_gather && lane == StreamId::gpu_gather) ||
         (cause == GapCause::waiting_for_reduce && lane == StreamId::gpu_reduce) ||
         (cause == GapCause::waiting_for_data && lane == StreamId::gpu_copy);
}

IntervalSet busy(const std::vector<store::Span>& spans) {
  std::vector<Interval> intervals;
  intervals.reserve(spans.size());
  for (const store::Span& span : spans) intervals.push_back({span.begin_ns, span.end_ns});
  return IntervalSet(std::move(intervals));
}

std::vector<GpuWait> waits(const store::Store& store, std::uint32_t rank, Interval window) {
  std::vector<GpuWait> found;
  for_each_span(store, {rank, StreamId::compute}, window.begin, window.end, [&](const store::Span& span) {
    if (const auto cause = cause_of_wait(span.kind)) found.push_back({{span.begin_ns, span.end_ns}, *cause});
  });
  // The work that ends a gap begins where the window ends.
  for (const GpuWait& wait : stream_waits(store, rank, {window.begin, window.end + 1})) found.push_back(wait);
  std::sort(found.begin(), found.end(),
            [](const GpuWait& a, const GpuWait& b) { return a.at.begin < b.at.begin; });
  // Waits of a stream do not overlap, but after a gap in the events two depths may contain the same wait.
  std::int64_t until = INT64_MIN;
  for (GpuWait& wait : found) {
    wait.at.begin = std::max(wait.at.begin, until);
    wait.at.end = std::max(wait.at.end, wait.at.begin);
    until = wait.at.end;
  }
  return found;
}

std::int64_t& of(GapTimes& times, GapCause cause) { return times[static_cast<std::size_t>(cause)]; }

GpuStream measure(StreamId lane, const std::vector<store::Span>& spans, const store::Span* next,
                  Interval window, const GpuSurroundings& around) {
  GpuStream out;
  std::int64_t free_from = window.begin;
  const auto gap = [&](std::int64_t until, const store::Span* ended_by) {
    until = std::min(until, window.end);
    if (until <= free_from) return;
    const IntervalSet idle = IntervalSet({{free_from, until}}).subtract(around.paused);
    for (const Interval& piece : idle.intervals()) {
      GapTimes parts{};
      if (ended_by == nullptr) {
        of(parts, GapCause::nothing_to_do) = piece.end - piece.begin;  // no further work
      } else {
        parts = explain_gap(lane, piece, launch_of(*ended_by), around);
      }
      for (std::size_t i = 0; i < kGapCauses; ++i) out.idle_ns[i] += parts[i];
    }
  };
  for (const store::Span& span : spans) {
    gap(span.begin_ns, &span);
    const std::int64_t from = std::max(span.begin_ns, free_from);
    const std::int64_t to = std::min(span.end_ns, window.end);
    // Pausing drains the streams: their last work extends into the pause.
    if (to > from) out.busy_ns += IntervalSet({{from, to}}).subtract(around.paused).length();
    free_from = std::max(free_from, to);
    if (span.begin_ns < window.begin || span.begin_ns >= window.end) continue;
    const ev::GpuWork work = ev::as<EventKind::gpu_begin>(span).work;
    ++(work == ev::GpuWork::kernel || work == ev::GpuWork::memset ? out.kernels : out.copies);
    const auto delay = delay_of(span);
    if (!delay) continue;
    ++out.launches;
    out.delay_sum_ns += *delay;
    out.delay_min_ns = std::min(out.delay_min_ns, *delay);
    out.delay_max_ns = std::max(out.delay_max_ns, *delay);
  }
  gap(window.end, next);
  return out;
}

GpuSurroundings surroundings(const store::Store& store, std::uint32_t rank, Interval window) {
  std::vector<Interval> paused;
  for_each_span(store, {rank, StreamId::host}, window.begin, window.end, [&](const store::Span& span) {
    if (span.kind == EventKind::paused_begin) paused.push_back({span.begin_ns, span.end_ns});
  });
  return {busy(gpu_spans(store, {rank, StreamId::gpu_compute}, window)), waits(store, rank, window),
          IntervalSet(std::move(paused))};
}

}  // namespace

const char* name_of(GapCause cause) noexcept {
  static constexpr std::array<const char*, kGapCauses> kNames{
      "waiting_for_gather",     "waiting_for_reduce", "waiting_for_update",
      "waiting_for_data",       "host_late",          "queued",
      "queued_while_computing", "nothing_to_do",      "unexplained"};
  const auto i = static_cast<std::size_t>(cause);
  return i < kGapCauses ? kNames[i] : "unknown";
}

const char* words_of(GapCause cause) noexcept {
  static constexpr std::array<const char*, kGapCauses> kWords{"waiting for gather",
                                                              "waiting for reduction",
                                                              "waiting for the deferred update",
                                                              "waiting for data",
                                                              "host late",
                                                              "queued",
                                                              "queued while computing",
                                                              "nothing to do",
                                                              "unexplained"};
  const auto i = static_cast<std::size_t>(cause);
  return i < kGapCauses ? kWords[i] : "unknown";
}

GapTimes explain_gap(StreamId lane, Interval gap, std::optional<std::int64_t> launch_ns,
                     const GpuSurroundings& around) {
  GapTimes out{};
  const bool compute = lane == StreamId::gpu_compute;
  // Compute's own waits; for another stream, compute's waits for anything but that stream.
  std::vector<Interval> own_waits, other_waits;
  auto wait = std::lower_bound(around.waits.begin(), around.waits.end(), gap.begin,
                               [](const GpuWait& w, std::int64_t at) { return w.at.end <= at; });
  for (; wait != around.waits.end() && wait->at.begin < gap.end; ++wait) {
    const Interval part{std::max(wait->at.begin, gap.begin), std::min(wait->at.end, gap.end)};
    if (compute) {
      of(out, wait->cause) += part.end - part.begin;
      own_waits.push_back(part);
    } else if (!is_for(wait->cause, lane)) {
      other_waits.push_back(part);
    }
  }
  const IntervalSet left = IntervalSet({gap}).subtract(IntervalSet(std::move(own_waits)));
  if (!launch_ns) {
    of(out, GapCause::unexplained) = left.length();
    return out;
  }
  const std::int64_t launch = std::clamp(*launch_ns, gap.begin, gap.end);
  const IntervalSet after = left.clip(launch, gap.end);
  const IntervalSet alone = compute ? after : after.subtract(around.compute_busy.clip(launch, gap.end));
  of(out, GapCause::queued) = alone.length();
  of(out, GapCause::queued_while_computing) = after.length() - alone.length();
  IntervalSet before = left.clip(gap.begin, launch);
  if (!compute) {
    const std::int64_t all = before.length();
    before = before.subtract(around.compute_busy.clip(gap.begin, gap.end))
                 .subtract(IntervalSet(std::move(other_waits)));
    of(out, GapCause::nothing_to_do) = all - before.length();
  }
  of(out, GapCause::host_late) = before.length();
  return out;
}

void GpuStream::add(const GpuStream& other) {
  kernels += other.kernels;
  copies += other.copies;
  busy_ns += other.busy_ns;
  for (std::size_t i = 0; i < kGapCauses; ++i) idle_ns[i] += other.idle_ns[i];
  launches += other.launches;
  delay_sum_ns += other.delay_sum_ns;
  delay_min_ns = std::min(delay_min_ns, other.delay_min_ns);
  delay_max_ns = std::max(delay_max_ns, other.delay_max_ns);
}

void GpuActivity::add(const GpuActivity& other) {
  for (const auto& [lane, stream] : other.streams) streams[lane].add(stream);
  dropped += other.dropped;
  not_placed += other.not_placed;
  no_launch += other.no_launch;
  if (other.clock_residual_ns)
    clock_residual_ns = std::max(clock_residual_ns.value_or(0), *other.clock_residual_ns);
  steps += other.steps;
}

bool gpu_known(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) {
  const store::LaneId lane{rank, StreamId::gpu_records};
  if (store.depth_count(lane) == 0) return false;
  std::vector<Interval> known;
  for_each_span(store, lane, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.end_ns != store::kOpen) known.push_back({span.begin_ns, span.end_ns});
  });
  return IntervalSet(std::move(known)).clip(begin_ns, end_ns).length() == end_ns - begin_ns;
}

std::optional<GpuActivity> gpu_activity(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                        std::int64_t end_ns) {
  if (end_ns <= begin_ns || !gpu_known(store, rank, begin_ns, end_ns)) return std::nullopt;
  GpuActivity out;
  out.steps = 1;
  const Interval window{begin_ns, end_ns};
  const GpuSurroundings around = surroundings(store, rank, window);
  for (const StreamId lane : kGpuLanes) {
    const store::LaneId id{rank, lane};
    if (store.depth_count(id) == 0) continue;
    std::optional<store::Span> next;  // the work after the window, which ends its last gap
    store.for_each_span(id, 0, end_ns, end_ns + kLookBackNs, [&](const store::Span& span) {
      if (!next && span.begin_ns >= end_ns && span.kind == EventKind::gpu_begin) next = span;
    });
    out.streams[lane] = measure(lane, gpu_spans(store, id, window), next ? &*next : nullptr, window, around);
  }
  for_each_span(store, {rank, StreamId::gpu_records}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.begin_ns < begin_ns) return;  // counted where it began
    const auto records = ev::as<EventKind::gpu_records_begin>(span);
    out.dropped += static_cast<std::uint64_t>(std::max<std::int64_t>(records.dropped, 0));
    out.not_placed += records.not_placed == ev::kNoId ? 0 : records.not_placed;
    out.no_launch += records.no_launch == ev::kNoId ? 0 : records.no_launch;
  });
  store.for_each_instant(rank, begin_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind == EventKind::gpu_clock)
      out.clock_residual_ns =
          std::max(out.clock_residual_ns.value_or(0), ev::as<EventKind::gpu_clock>(event).residual_ns);
  });
  return out;
}

std::optional<GapBefore> gap_before(const store::Store& store, store::LaneId lane, const store::Span& span) {
  std::optional<std::int64_t> from;
  // Search in growing steps: it is usually near, and a whole second may contain very many spans.
  for (std::int64_t back = kLookBackNs / 1024; !from && back <= kLookBackNs; back *= 32) {
    for (const store::Span& before : gpu_spans(store, lane, {span.begin_ns - back, span.begin_ns})) {
      if (before.begin_ns < span.begin_ns) from = std::max(from.value_or(before.end_ns), before.end_ns);
    }
  }
  if (!from || *from >= span.begin_ns) return std::nullopt;
  const Interval gap{*from, span.begin_ns};
  GapBefore out{gap, explain_gap_before(store, lane, gap, span), gap.end - gap.begin};
  for (const std::int64_t part : out.parts) out.paused_ns -= part;
  return out;
}

GapTimes explain_gap_before(const store::Store& store, store::LaneId lane, Interval gap,
                            const store::Span& next) {
  const GpuSurroundings around = surroundings(store, lane.rank, gap);
  GapTimes out{};
  const IntervalSet running = IntervalSet({gap}).subtract(around.paused);
  for (const Interval& piece : running.intervals()) {
    const GapTimes parts = explain_gap(lane.stream, piece, launch_of(next), around);
    for (std::size_t i = 0; i < kGapCauses; ++i) out[i] += parts[i];
  }
  return out;
}

std::string gap_text(const GapTimes& parts, std::string (*duration)(std::int64_t)) {
  std::vector<std::pair<std::int64_t, GapCause>> order;
  for (std::size_t i = 0; i < kGapCauses; ++i) {
    if (parts[i] > 0) order.emplace_back(parts[i], static_cast<GapCause>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [ns, cause] : order) {
    if (!out.empty()) out += ", ";
    out += std::string(words_of(cause)) + " " + duration(ns);
  }
  return out;
}

}  // namespace shardscope::analysis
