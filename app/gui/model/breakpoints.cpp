#include "app/gui/model/breakpoints.h"

#include <algorithm>
#include <cmath>

#include "app/analysis/communication.h"
#include "app/analysis/spans.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/store/lane.h"
#include "app/store/span_time.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

using Hit = std::optional<std::int64_t>;

std::int64_t ns_of(double ms) { return static_cast<std::int64_t>(ms * 1e6); }

Hit next_step(const store::Store& store, std::int64_t after_ns, std::int64_t until_ns, auto&& matches,
              auto&& time) {
  for (const store::StepRow& step : store.steps()) {
    const std::int64_t at = time(step);
    if (at > after_ns && at <= until_ns && matches(step)) return at;
  }
  return std::nullopt;
}

/// Elements gathered or in flight at the gates after a time: the count changes between gates only.
Hit next_live(const store::Store& store, std::uint32_t rank, double threshold, std::int64_t after_ns,
              std::int64_t until_ns) {
  if (!store.has_tables() || store.tables().stage != 3) return std::nullopt;
  const auto& params = store.tables().params;
  std::vector<store::ParamState> states(params.size());
  const auto gate = store.gate_after(rank, after_ns, [&](const store::Store::GateRow& row) {
    if (row.at_ns > until_ns) return true;
    store.param_states(rank, row.at_ns, states);
    if (!store.is_known(rank, row.at_ns)) return false;
    double live = 0;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const auto status = static_cast<plan::ParamStatus>(ev::status_of(states[i].status));
      if (status != plan::ParamStatus::not_available) live += static_cast<double>(params[i].elems);
    }
    return live > threshold;
  });
  return gate && gate->at_ns <= until_ns ? Hit(gate->at_ns) : std::nullopt;
}

Hit next_wait(const store::Store& store, std::uint32_t rank, double threshold_ms, std::int64_t after_ns,
              std::int64_t until_ns) {
  Hit first;
  const store::LaneId lane{rank, ev::StreamId::compute};
  analysis::for_each_span(store, lane, after_ns, until_ns + 1, [&](const store::Span& span) {
    if (!store::is_wait(span.kind) || span.end_ns == store::kOpen || span.end_ns <= after_ns ||
        span.end_ns > first.value_or(until_ns) ||
        store::time_of(store, rank, span).running_ns <= ns_of(threshold_ms))
      return;
    first = span.end_ns;
  });
  return first;
}

Hit next_late(const store::Store& store, std::uint32_t rank, double threshold_ms, std::int64_t after_ns,
              std::int64_t until_ns) {
  Hit first;
  analysis::for_each_collective(store, rank, after_ns, until_ns, [&](ev::StreamId, const store::Span& span) {
    if (span.mark_ns <= after_ns || span.mark_ns > until_ns ||
        span.mark_ns - span.begin_ns <= ns_of(threshold_ms))
      return;
    first = std::min(first.value_or(span.mark_ns), span.mark_ns);
  });
  return first;
}

Hit next_flush(const store::Store& store, std::uint32_t rank, std::uint32_t bucket, std::int64_t after_ns,
               std::int64_t until_ns) {
  Hit first;
  store.for_each_instant(rank, after_ns + 1, until_ns + 1, [&](const ev::Event& event) {
    if (first || event.kind != ev::EventKind::bucket_flush) return;
    if (bucket == ev::kNoId || ev::as<ev::EventKind::bucket_flush>(event).bucket == bucket)
      first = static_cast<std::int64_t>(event.ticks);
  });
  return first;
}

Hit hit_of(const Session& run, std::uint32_t rank, const Breakpoint& breakpoint, std::int64_t after_ns,
           std::int64_t until_ns) {
  const store::Store& store = run.store();
  const auto gate = [&](RunToKind kind) -> Hit {
    const auto row = gate_run_to(store, rank, after_ns, {kind, breakpoint.id}, Direction::forward, until_ns);
    return row ? Hit(row->at_ns) : std::nullopt;
  };
  const auto end_of = [](const store::StepRow& step) {
    return step.end_ns == store::kOpen ? INT64_MAX : step.end_ns;
  };
  switch (breakpoint.kind) {
    case BreakKind::module:
      return gate(RunToKind::module);
    case BreakKind::param:
      return gate(RunToKind::param);
    case BreakKind::bucket:
      return next_flush(store, rank, breakpoint.id, after_ns, until_ns);
    case BreakKind::step:
      return next_step(
          store, after_ns, until_ns, [&](const store::StepRow& step) { return step.step == breakpoint.id; },
          [](const store::StepRow& step) { return step.begin_ns; });
    case BreakKind::loss:
      return next_step(
          store, after_ns, until_ns, [](const store::StepRow& step) { return !std::isfinite(step.loss); },
          end_of);
    case BreakKind::overflow:
      return next_step(
          store, after_ns, until_ns, [](const store::StepRow& step) { return step.skipped; }, end_of);
    case BreakKind::live_elements:
      return next_live(store, rank, breakpoint.threshold, after_ns, until_ns);
    case BreakKind::wait:
      return next_wait(store, rank, breakpoint.threshold, after_ns, until_ns);
    case BreakKind::late_rank:
      return next_late(store, rank, breakpoint.threshold, after_ns, until_ns);
  }
  return std::nullopt;
}

bool in(BreakFilter::Of of, BreakKind kind) {
  const bool run_wide = kind == BreakKind::step || kind == BreakKind::loss || kind == BreakKind::overflow;
  return of == BreakFilter::Of::all || (of == BreakFilter::Of::run) == run_wide;
}

}  // namespace

const char* word(BreakKind kind, const store::Vocabulary& words) noexcept {
  switch (kind) {
    case BreakKind::module:
      return "module";
    case BreakKind::param:
      return "parameter";
    case BreakKind::bucket:
      return words.has_buckets ? "bucket flushed" : "reduction begins";
    case BreakKind::step:
      return "step";
    case BreakKind::loss:
      return "loss not finite";
    case BreakKind::overflow:
      return "overflow";
    case BreakKind::live_elements:
      return "live elements above";
    case BreakKind::wait:
      return "wait longer than";
    case BreakKind::late_rank:
      return "rank later than";
  }
  return "";
}

const char* threshold_unit(BreakKind kind) noexcept {
  switch (kind) {
    case BreakKind::live_elements:
      return "elements";
    case BreakKind::wait:
    case BreakKind::late_rank:
      return "ms";
    default:
      return "";
  }
}

std::string text_of(const store::Store& store, const Breakpoint& breakpoint) {
  const store::Vocabulary& words = words_of(store);
  const std::string kind = word(breakpoint.kind, words);
  switch (breakpoint.kind) {
    case BreakKind::module:
      return "module " + module_name(store, breakpoint.id);
    case BreakKind::param:
      return "next use of " + param_name(store, breakpoint.id);
    case BreakKind::bucket:
      return (breakpoint.id == ev::kNoId ? std::string("any ") + words.bucket
                                         : std::string(words.bucket) + " " + std::to_string(breakpoint.id)) +
             (words.has_buckets ? " is flushed" : " begins");
    case BreakKind::step:
      return "step " + std::to_string(breakpoint.id);
    case BreakKind::loss:
    case BreakKind::overflow:
      return kind;
    case BreakKind::live_elements:
      return kind + " " + count(breakpoint.threshold).text();
    case BreakKind::wait:
    case BreakKind::late_rank:
      return kind + " " + milliseconds(breakpoint.threshold).text();
  }
  return kind;
}

std::optional<BreakHit> next_hit(const Session& run, std::uint32_t rank,
                                 std::span<const Breakpoint> breakpoints, std::int64_t after_ns,
                                 std::int64_t until_ns, const BreakFilter& filter) {
  std::optional<BreakHit> first;
  for (std::size_t i = 0; i < breakpoints.size(); ++i) {
    if (!breakpoints[i].enabled || filter.without == i || !in(filter.of, breakpoints[i].kind)) continue;
    // Only an earlier hit than the first so far matters.
    const std::int64_t until = first ? std::min(until_ns, first->at_ns - 1) : until_ns;
    if (until <= after_ns) break;
    if (const Hit hit = hit_of(run, rank, breakpoints[i], after_ns, until)) first = {*hit, i};
  }
  return first;
}

std::int64_t Playback::advance(std::int64_t at_ns, double seconds, std::int64_t end_ns) {
  const double next = static_cast<double>(at_ns) + std::max(0.0, seconds) * speed * 1e9;
  if (next >= static_cast<double>(end_ns)) {
    playing = false;
    return std::max(at_ns, end_ns);
  }
  return static_cast<std::int64_t>(next);
}

}  // namespace shardscope::gui
