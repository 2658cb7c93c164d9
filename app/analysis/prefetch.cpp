// What became of each prefetch: the figure no other tool shows.
#include <algorithm>
#include <map>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/spans.h"

namespace shardscope::analysis {

using ev::EventKind;
using ev::StreamId;

Prefetch prefetch_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                           std::int64_t end_ns) {
  Prefetch result;
  std::map<std::uint32_t, std::int64_t> issued;  // gather id -> when
  std::int64_t last_invalidation_ns = INT64_MIN;
  for (const ev::Event& event : instants_within(store, rank, begin_ns, end_ns)) {
    const auto at = static_cast<std::int64_t>(event.ticks);
    if (event.kind == EventKind::prefetch_issued) issued[event.a] = at;
    if (event.kind == EventKind::trace_invalidated) last_invalidation_ns = at;
  }
  if (issued.empty()) return result;

  std::map<std::uint32_t, store::Span> gathers, waits;
  const auto collect = [&](StreamId stream, EventKind kind, auto& into) {
    for_each_span(store, {rank, stream}, begin_ns, end_ns, [&](const store::Span& span) {
      if (span.kind == kind && span.end_ns != store::kOpen && issued.contains(span.b)) {
        into.try_emplace(span.b, span);
      }
    });
  };
  collect(StreamId::gather, EventKind::collective_begin, gathers);
  collect(StreamId::compute, EventKind::fetch_wait_begin, waits);

  for (const auto& [id, issued_ns] : issued) {
    const auto gather = gathers.find(id);
    const auto wait = waits.find(id);
    if (wait == waits.end()) {
      ++(last_invalidation_ns >= issued_ns ? result.mistargeted : result.unused);
      continue;
    }
    if (gather == gathers.end()) continue;  // its record was dropped: neither early nor late
    const std::int64_t slack_ns = wait->second.begin_ns - gather->second.end_ns;
    if (slack_ns < 0) {
      ++result.late;
      result.late_wait_ns += wait->second.end_ns - wait->second.begin_ns;
    } else if (slack_ns <= gather->second.end_ns - gather->second.begin_ns) {
      ++result.just_in_time;
    } else {
      ++result.early;
    }
  }
  return result;
}

}  // namespace shardscope::analysis
