#include "app/export/span_walk.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/span_label.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using store::Span;
using store::Store;

bool can_be_work(EventKind kind) noexcept {
  return ev::is_begin(kind) && ev::role_of(kind) == ev::EventRole::work;
}

/// With GPU records the kernels and copies are the work, and the spans of the runtime's streams only their
/// cause.
bool shown_by_gpu_records(const Store& store, store::LaneId lane) {
  switch (lane.stream) {
    case ev::StreamId::compute:
    case ev::StreamId::gather:
    case ev::StreamId::reduce:
    case ev::StreamId::copy:
      return store.depth_count({lane.rank, ev::StreamId::gpu_records}) > 0;
    default:
      return false;
  }
}

/// The progress of the export in this thread; null if none is reported.
thread_local WalkProgress* g_progress = nullptr;

}  // namespace

void walk_spans(const Store& store, store::LaneId lane, std::int64_t from, std::int64_t to,
                const std::function<void(const WalkedSpan&)>& visit) {
  const std::uint8_t depths = store.depth_count(lane);
  const bool elsewhere = shown_by_gpu_records(store, lane);
  std::vector<std::vector<Span>> rows(depths);
  std::vector<std::size_t> next(depths, 0);
  for (std::uint8_t d = 0; d < depths; ++d) {
    store.for_each_span(lane, d, from, to, [&](const Span& span) {
      if (span.begin_ns >= from) rows[d].push_back(span);
    });
  }
  // A lane has few depths: comparing their next spans is cheaper than a heap.
  for (;;) {
    std::size_t first = depths;
    for (std::size_t d = 0; d < depths; ++d) {
      if (next[d] == rows[d].size()) continue;
      if (first == depths || rows[d][next[d]].begin_ns < rows[first][next[first]].begin_ns) first = d;
    }
    if (first == depths) break;
    const Span& span = rows[first][next[first]++];
    const store::SpanTime time = store::time_of(store, lane.rank, span);
    const std::int64_t end = time.until_ns;
    bool inner = false;
    for (std::size_t d = first + 1; d < depths && !inner; ++d) {
      for (std::size_t i = next[d]; i < rows[d].size() && rows[d][i].begin_ns < end && !inner; ++i) {
        inner = can_be_work(rows[d][i].kind);
      }
      // The children of a span that crosses `to` may begin in the next part.
      if (!inner && can_be_work(span.kind) && end > to) {
        store.for_each_span(lane, static_cast<std::uint8_t>(d), to, end, [&](const Span& later) {
          inner = inner || (later.begin_ns >= to && can_be_work(later.kind));
        });
      }
    }
    visit({.span = &span,
           .end_ns = end,
           .time = time,
           .is_work = can_be_work(span.kind) && !inner && !elsewhere});
  }
}

WalkProgress::WalkProgress(const Store& store, std::function<void(double)> report)
    : report_(std::move(report)) {
  for (const store::LaneId lane : store.lanes()) parts_ += static_cast<double>(store.cuts(lane).size() + 1);
  g_progress = this;
}

WalkProgress::~WalkProgress() { g_progress = nullptr; }

void WalkProgress::part() {
  report_(std::min(1.0, done_ / std::max(1.0, parts_)));
  done_ += 1;
}

void walk_spans(const Store& store, store::LaneId lane, const std::function<void(const WalkedSpan&)>& visit) {
  walk_overlapping(store, lane, Store::kBegin, Store::kEnd, visit);
}

void walk_overlapping(const Store& store, store::LaneId lane, std::int64_t begin_ns, std::int64_t end_ns,
                      const std::function<void(const WalkedSpan&)>& visit) {
  // A span that overlaps the range may begin before it.
  std::int64_t from = begin_ns;
  for (std::uint8_t d = 0; begin_ns > Store::kBegin && begin_ns < Store::kEnd && d < store.depth_count(lane);
       ++d) {
    store.for_each_span(lane, d, begin_ns, begin_ns + 1,
                        [&](const Span& span) { from = std::min(from, span.begin_ns); });
  }
  std::vector<std::int64_t> cuts = store.cuts(lane);
  cuts.push_back(Store::kEnd);
  for (const std::int64_t cut : cuts) {
    if (g_progress != nullptr) g_progress->part();
    const std::int64_t to = std::min(cut, end_ns);
    if (to <= from) continue;  // outside of the range; counted as done
    walk_spans(store, lane, from, to, visit);
    from = to;
  }
}

std::string span_label(const Store& store, std::uint32_t rank, const Span& span) {
  switch (span.kind) {
    case EventKind::step_begin:
      return "ProfilerStep#" + std::to_string(ev::as<EventKind::step_begin>(span).step);
    case EventKind::collective_begin:
      return store::name_of(ev::as<EventKind::collective_begin>(span).op);
    default:
      return store::label_of(store, rank, span);
  }
}

std::string span_name(const Store& store, std::uint32_t rank, const Span& span) {
  std::string name = span_label(store, rank, span);
  if (span.kind == EventKind::module_begin)
    name += std::string(" ") + store::name_of(ev::as<EventKind::module_begin>(span).pass);
  return name;
}

namespace {

/// [Note: flows of a range]
/// A gather is matched to the collective nearest in time, which may be outside the range: events are read up
/// to this distance around it. A match within the distance is the nearest one of the whole recording.
std::int64_t distance_around(const Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  if (begin_ns == Store::kBegin && end_ns == Store::kEnd) return Store::kEnd;
  std::int64_t longest = 0;
  for (const store::StepRow& step : store.steps()) {
    if (step.end_ns == store::kOpen || step.end_ns <= begin_ns || step.begin_ns >= end_ns) continue;
    longest = std::max(longest, step.end_ns - step.begin_ns);
  }
  return longest == 0 ? Store::kEnd : 2 * longest;
}
std::int64_t before(std::int64_t at_ns, std::int64_t distance) {
  return distance == Store::kEnd || at_ns < Store::kBegin + distance ? Store::kBegin : at_ns - distance;
}
std::int64_t after(std::int64_t at_ns, std::int64_t distance) {
  return distance == Store::kEnd || at_ns > Store::kEnd - distance ? Store::kEnd : at_ns + distance;
}

/// Sequence number of the collective of each gather of a rank that was in flight in [begin, end), matched by
/// their parameters.
std::unordered_map<std::uint32_t, std::uint32_t> gather_collectives(const Store& store, std::uint32_t rank,
                                                                    std::int64_t begin_ns,
                                                                    std::int64_t end_ns) {
  // For each parameter its collectives by time, then for each gather the nearest of them. Gathers and
  // collectives have separate ids; their parameters and times connect them.
  struct Part {
    std::int64_t at_ns;
    std::uint32_t sequence;
  };
  std::unordered_map<std::uint32_t, std::vector<Part>> parts;  // by param
  const std::int64_t around = distance_around(store, begin_ns, end_ns);
  const std::int64_t from_ns = before(begin_ns, around);  // a gather may be in flight before its collective
  store.for_each_instant(rank, before(from_ns, around), after(end_ns, around), [&](const ev::Event& event) {
    if (event.kind != EventKind::collective_part) return;
    const auto part = ev::as<EventKind::collective_part>(event);
    if (part.op != ev::CollectiveOp::all_gather) return;
    parts[part.param].push_back({static_cast<std::int64_t>(event.ticks), part.sequence});
  });
  std::unordered_map<std::uint32_t, std::uint32_t> out;
  store.for_each_instant(rank, from_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind != EventKind::param_status) return;
    const auto change = ev::as<EventKind::param_status>(event);
    if (change.gather == ev::kNoId || change.status.status() != plan::ParamStatus::in_flight ||
        out.count(change.gather) > 0)
      return;
    const auto of_param = parts.find(change.param);
    if (of_param == parts.end()) return;
    const auto at = static_cast<std::int64_t>(event.ticks);
    const std::vector<Part>& list = of_param->second;
    auto nearest = std::lower_bound(list.begin(), list.end(), at,
                                    [](const Part& p, std::int64_t t) { return p.at_ns < t; });
    if (nearest == list.end() || (nearest != list.begin() && at - (nearest - 1)->at_ns < nearest->at_ns - at))
      --nearest;
    if (std::abs(nearest->at_ns - at) > around) return;
    out.emplace(change.gather, nearest->sequence);
  });
  return out;
}

}  // namespace

std::vector<Flow> flows_to_waits(const Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                 std::int64_t end_ns) {
  const auto sequences = gather_collectives(store, rank, begin_ns, end_ns);
  std::unordered_map<std::uint32_t, std::int64_t> collectives;  // sequence number -> begin
  const store::LaneId gather{rank, ev::StreamId::gather};
  for (std::uint8_t d = 0; d < store.depth_count(gather); ++d) {
    store.for_each_span(gather, d, begin_ns, end_ns, [&](const Span& span) {
      if (span.kind == EventKind::collective_begin)
        collectives.emplace(ev::as<EventKind::collective_begin>(span).sequence, span.begin_ns);
    });
  }
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> reductions;  // bucket -> begins, ascending
  const store::LaneId reduce{rank, ev::StreamId::reduce};
  for (std::uint8_t d = 0; d < store.depth_count(reduce); ++d) {
    store.for_each_span(reduce, d, begin_ns, end_ns, [&](const Span& span) {
      if (span.kind == EventKind::collective_begin && span.begin_ns >= begin_ns)
        reductions[ev::as<EventKind::collective_begin>(span).group].push_back(span.begin_ns);
    });
  }
  for (auto& [bucket, begins] : reductions) std::ranges::sort(begins);
  std::vector<Flow> flows;
  const auto add = [&](std::int64_t from_ns, std::int64_t to_ns, bool reduces) {
    flows.push_back({.id = (static_cast<std::uint64_t>(rank) << 40) + flows.size() + 1,
                     .from_ns = from_ns,
                     .to_ns = to_ns,
                     .reduces = reduces});
  };
  const store::LaneId compute{rank, ev::StreamId::compute};
  for (std::uint8_t d = 0; d < store.depth_count(compute); ++d) {
    store.for_each_span(compute, d, begin_ns, end_ns, [&](const Span& wait) {
      if (wait.end_ns == store::kOpen) return;
      const std::int64_t to = wait.end_ns > wait.begin_ns ? wait.end_ns - 1 : wait.end_ns;
      if (wait.kind == EventKind::reduce_wait_begin && to < end_ns) {
        // The bucket's latest reduction begun by then: later steps use the same bucket numbers.
        const auto begins = reductions.find(ev::as<EventKind::reduce_wait_begin>(wait).bucket);
        if (begins == reductions.end()) return;
        const auto after = std::ranges::upper_bound(begins->second, to);
        if (after != begins->second.begin()) add(*(after - 1), to, true);
        return;
      }
      if (wait.kind != EventKind::fetch_wait_begin) return;
      const auto sequence = sequences.find(ev::as<EventKind::fetch_wait_begin>(wait).gather);
      if (sequence == sequences.end()) return;
      const auto collective = collectives.find(sequence->second);
      if (collective == collectives.end()) return;
      if (collective->second < begin_ns || to >= end_ns) return;
      if (collective->second > to) return;  // dropped events can connect the wrong ends
      add(collective->second, to, false);
    });
  }
  return flows;
}

}  // namespace shardscope::exporter
