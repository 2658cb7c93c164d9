#include "app/analysis/hang/rank_states.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/analysis/spans.h"
#include "app/store/lane.h"
#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/span_label.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

/// Whether the span is a phase without a usual length: others may wait for it as long as it takes.
bool is_long_phase(const store::Span& span) {
  if (span.kind != EventKind::phase_begin) return false;
  switch (ev::as<EventKind::phase_begin>(span).phase) {
    case ev::Phase::checkpoint_save:
    case ev::Phase::checkpoint_load:
    case ev::Phase::evaluation:
    case ev::Phase::generation:
    case ev::Phase::compilation:
      return true;
    default:
      return false;
  }
}

/// The open spans of a lane.
struct OpenSpans {
  std::optional<store::Span> innermost;
  bool long_phase = false;  ///< one of them is_long_phase()
};
OpenSpans open_spans(const store::Store& store, store::LaneId lane, std::int64_t from_ns) {
  OpenSpans out;
  for_each_span(store, lane, from_ns, store::Store::kEnd, [&](const store::Span& span) {
    if (span.end_ns != store::kOpen) return;
    if (!out.innermost || span.depth >= out.innermost->depth) out.innermost = span;
    out.long_phase = out.long_phase || is_long_phase(span);
  });
  return out;
}

std::string doing(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  if (const std::string what = store::awaited(store, span); !what.empty()) return "waiting for " + what;
  const std::string label = store::label_of(store, rank, span);
  switch (span.kind) {
    case EventKind::module_begin:
      return fmt::format("in {} ({})", label, ev::label_of(ev::as<EventKind::module_begin>(span).pass));
    case EventKind::phase_begin:
      return "in the phase " + label;
    case EventKind::optimizer_begin:
      return "in the " + label;
    case EventKind::paused_begin:
      return "held at a gate";
    default:
      return "in " + label;
  }
}

std::string last_gate(const store::Store& store, std::uint32_t rank) {
  const auto gate = store.gate_before(rank, store::Store::kEnd);
  if (!gate) return {};
  const bool module = gate->kind == ev::GateKind::pre_forward || gate->kind == ev::GateKind::post_forward ||
                      gate->kind == ev::GateKind::pre_backward || gate->kind == ev::GateKind::post_backward;
  return module ? fmt::format("{} of {}", ev::label_of(gate->kind), store::module_name(store, gate->id))
                : fmt::format("{} {}", ev::label_of(gate->kind), gate->id);
}

/// The last step that the rank ended; nullopt if there is none.
std::optional<std::uint32_t> last_step(const store::Store& store, std::uint32_t rank, std::int64_t from_ns) {
  std::optional<std::uint32_t> last;
  for_each_span(store, {rank, StreamId::host}, from_ns, store::Store::kEnd, [&](const store::Span& span) {
    if (span.kind == EventKind::step_begin && span.end_ns != store::kOpen)
      last = std::max(last.value_or(0), ev::as<EventKind::step_begin>(span).step);
  });
  return last;
}

}  // namespace

const Issue* oldest_open(const IssuedCollectives& known) {
  const Issue* oldest = nullptr;
  for (const auto& [key, issue] : known.issues) {
    if (issue.open && (oldest == nullptr || issue.at_ns < oldest->at_ns)) oldest = &issue;
  }
  return oldest;
}

RankState state_of(const store::Store& store, const store::RankRow& row, const IssuedCollectives& known,
                   std::int64_t from_ns) {
  RankState out;
  out.rank = row.rank;
  out.last_event_ns = row.last_ns;
  out.gate = last_gate(store, row.rank);
  out.collectives = known.issues.size();
  const store::RankEnd end = store::rank_end(store, row);
  out.reported_end = end.how == store::RankEnd::How::finished || end.how == store::RankEnd::How::failed;
  if (out.reported_end) out.exit_message = end.exit_message;
  if (store::is_failure(end.how)) {
    out.how = RankState::How::gone;
    out.since_ns = end.at_ns;
    const std::string text = store::text_of(end);
    const std::size_t was = text.find("was "), failed = text.find("failed");
    out.doing = was != std::string::npos      ? text.substr(was)
                : failed != std::string::npos ? text.substr(failed)
                                              : "is gone";
  } else if (end.how == store::RankEnd::How::stopped) {
    out.how = RankState::How::stopped;
    const auto silence = store::silence_now(store, row.rank);
    out.since_ns = silence ? silence->begin_ns : end.at_ns;
    out.doing = fmt::format("{} since {}", end.stop_seen ? "is stopped" : "is silent, perhaps stopped,",
                            store::seconds_text(out.since_ns));
    if (const auto compute = open_spans(store, {row.rank, StreamId::compute}, from_ns).innermost)
      out.doing += ", last seen " + doing(store, row.rank, *compute);
  } else if (end.how == store::RankEnd::How::finished) {
    out.how = RankState::How::ended;
    out.since_ns = end.at_ns;
    out.doing = "has ended, with code 0";
  }
  if (const Issue* const oldest = oldest_open(known); oldest != nullptr) {
    out.collective = oldest->named;
    if (out.how == RankState::How::between) out.since_ns = oldest->at_ns;
  }
  if (out.how != RankState::How::between) return out;
  const auto host = open_spans(store, {row.rank, StreamId::host}, from_ns).innermost;
  const auto [compute, long_phase] = open_spans(store, {row.rank, StreamId::compute}, from_ns);
  out.long_phase = long_phase;
  if (host && host->kind == EventKind::paused_begin) {
    out.how = RankState::How::paused;
    out.doing = doing(store, row.rank, *host);
    out.since_ns = host->begin_ns;
    return out;
  }
  if (compute) out.doing = doing(store, row.rank, *compute);
  if (out.collective) {
    out.how = RankState::How::in_collective;
    return out;
  }
  if (!compute) {
    out.since_ns = row.last_ns;
    out.doing = host && host->kind == EventKind::step_begin ? "between two modules" : "between two steps";
    if (const auto step = last_step(store, row.rank, from_ns); step && out.doing == "between two steps")
      out.doing += fmt::format(", after step {}", *step);
    return out;
  }
  out.how = store::is_wait(compute->kind) || compute->kind == EventKind::data_wait_begin
                ? RankState::How::waiting
                : RankState::How::working;
  out.since_ns = compute->begin_ns;
  return out;
}

bool is_over(const RankState& one) {
  return one.how == RankState::How::gone || one.how == RankState::How::ended;
}

void drop_completed_collectives(const std::vector<IssuedCollectives>& recent, std::vector<RankState>& ranks) {
  for (std::size_t index = 0; index < recent.size(); ++index) {
    RankState& state = ranks[index];
    if (!is_over(state) && state.how != RankState::How::stopped) continue;
    const Issue* const oldest = oldest_open(recent[index]);
    if (oldest == nullptr) continue;
    const bool over = std::ranges::any_of(recent, [&](const IssuedCollectives& other) {
      return std::ranges::binary_search(oldest->members(), other.rank) && other.is_past(oldest->key);
    });
    if (over) state.collective.reset();
  }
}

}  // namespace shardscope::analysis
