// The outcome of each prefetch: a figure that no other tool shows.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/spans.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {

using ev::EventKind;
using ev::StreamId;
using plan::PrefetchOutcome;

namespace {

void count(Prefetch& result, PrefetchOutcome outcome, std::int64_t slack_ns) {
  switch (outcome) {
    case PrefetchOutcome::early:
      ++result.early;
      break;
    case PrefetchOutcome::just_in_time:
      ++result.just_in_time;
      break;
    case PrefetchOutcome::late:
      ++result.late;
      result.late_wait_ns -= slack_ns;
      break;
    case PrefetchOutcome::mistargeted:
      ++result.mistargeted;
      break;
    case PrefetchOutcome::unused:
      ++result.unused;
      break;
  }
}

/// Bytes moved by these gathers, counted once per issue.
std::int64_t gathered_bytes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                            std::int64_t end_ns, const std::set<std::uint32_t>& gathers) {
  std::int64_t bytes = 0;
  if (gathers.empty()) return bytes;
  for_each_span(store, {rank, StreamId::gather}, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind != EventKind::collective_begin) return;
    const auto fields = ev::as<EventKind::collective_begin>(span);
    if (gathers.contains(fields.group)) bytes += fields.bytes;
  });
  return bytes;
}

bool in_vain(PrefetchOutcome outcome) {
  return outcome == PrefetchOutcome::mistargeted || outcome == PrefetchOutcome::unused;
}

}  // namespace

Prefetch prefetch_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                           std::int64_t end_ns) {
  if (store.instant_count(rank, EventKind::prefetch_outcome) == 0) {
    return derived_outcomes(store, rank, begin_ns, end_ns);
  }
  Prefetch result;
  std::set<std::uint32_t> vain;
  store.for_each_instant(rank, begin_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind != EventKind::prefetch_outcome) return;
    const auto fields = ev::as<EventKind::prefetch_outcome>(event);
    count(result, fields.outcome, fields.slack_ns);
    if (in_vain(fields.outcome)) vain.insert(fields.gather);
  });
  result.vain_bytes = gathered_bytes(store, rank, begin_ns, end_ns, vain);
  return result;
}

Prefetch derived_outcomes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                          std::int64_t end_ns) {
  Prefetch result;
  // For each gather whether a module used one of its parameters, and whether any was released by an
  // invalidation of the trace. A wait is not a use: parameters released by an invalidation or at the end of
  // the step are waited for as well, then freed.
  struct PrefetchUse {
    bool reported = false, used = false, invalidated = false;
  };
  std::map<std::uint32_t, PrefetchUse> issued;
  std::int64_t last_invalidation_ns = INT64_MIN;
  std::map<std::uint32_t, std::int64_t> issued_at_ns;
  // The host issues ahead of the device, often by steps: a prefetch belongs to the interval in which its
  // gather starts, according to the status of its parameters. Without statuses (lower level of detail) the
  // time of issue is used.
  constexpr auto kInFlight = static_cast<std::uint8_t>(plan::ParamStatus::in_flight);
  const std::array<std::uint8_t, 2> started{
      ev::status_code(kInFlight, ev::StatusCause::prefetch),
      ev::status_code(kInFlight | ev::kSecondaryHeld, ev::StatusCause::prefetch)};
  const bool statuses = store.instant_count(rank, EventKind::param_status, started[0]) +
                            store.instant_count(rank, EventKind::param_status, started[1]) >
                        0;
  if (!statuses && store.instant_count(rank, EventKind::prefetch_issued) == 0) return result;
  const auto events = store.instants(rank, begin_ns, end_ns);
  for (const ev::Event& event : events) {
    const auto change = ev::as<EventKind::param_status>(event);
    const bool starts = event.kind == EventKind::param_status &&
                        change.status.status() == plan::ParamStatus::in_flight &&
                        change.cause == ev::StatusCause::prefetch;
    if (statuses ? !starts : event.kind != EventKind::prefetch_issued) continue;
    const std::uint32_t gather = statuses ? change.gather : ev::as<EventKind::prefetch_issued>(event).gather;
    if (issued.try_emplace(gather).second) issued_at_ns[gather] = static_cast<std::int64_t>(event.ticks);
  }
  if (issued.empty()) return result;
  for (const ev::Event& event : events) {
    if (event.kind == EventKind::trace_invalidated) {
      last_invalidation_ns = static_cast<std::int64_t>(event.ticks);
    }
    if (event.kind != EventKind::param_status) continue;
    const auto change = ev::as<EventKind::param_status>(event);
    const auto found = issued.find(change.gather);
    if (found == issued.end()) continue;
    PrefetchUse& use = found->second;
    const plan::ParamStatus status = change.status.status();
    use.reported = use.reported || status != plan::ParamStatus::in_flight;
    use.used = use.used || status == plan::ParamStatus::available;
    use.invalidated = use.invalidated || change.cause == ev::StatusCause::invalidation;
  }

  std::map<std::uint32_t, store::Span> gathers, waits;
  const auto collect = [&](StreamId stream, EventKind kind, auto& into) {
    for_each_span(store, {rank, stream}, begin_ns, end_ns, [&](const store::Span& span) {
      if (span.kind != kind || span.end_ns == store::kOpen) return;
      const std::uint32_t gather = kind == EventKind::collective_begin
                                       ? ev::as<EventKind::collective_begin>(span).group
                                       : ev::as<EventKind::fetch_wait_begin>(span).gather;
      if (issued.contains(gather)) {
        // Quantized and hierarchical gathers are several collectives: take the first to the last.
        store::Span& known = into.try_emplace(gather, span).first->second;
        known.begin_ns = std::min(known.begin_ns, span.begin_ns);
        known.end_ns = std::max(known.end_ns, span.end_ns);
      }
    });
  };
  collect(StreamId::gather, EventKind::collective_begin, gathers);
  collect(StreamId::compute, EventKind::fetch_wait_begin, waits);

  std::set<std::uint32_t> vain;
  for (const auto& [id, use] : issued) {
    const auto gather = gathers.find(id);
    const auto wait = waits.find(id);
    if (wait == waits.end() || (use.reported && !use.used)) {
      const bool broken = use.reported ? use.invalidated : last_invalidation_ns >= issued_at_ns[id];
      count(result, plan::outcome_of_unused(broken), 0);
      vain.insert(id);
      continue;
    }
    if (gather == gathers.end()) continue;  // its event was dropped: neither early nor late
    const plan::PrefetchVerdict verdict = plan::judge_prefetch(
        {gather->second.begin_ns, gather->second.end_ns, wait->second.begin_ns, wait->second.end_ns});
    count(result, verdict.outcome, verdict.slack_ns);
  }
  result.vain_bytes = gathered_bytes(store, rank, begin_ns, end_ns, vain);
  return result;
}

}  // namespace shardscope::analysis
