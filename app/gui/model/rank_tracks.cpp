#include "app/gui/model/rank_tracks.h"

#include <algorithm>

#include "app/analysis/spans.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

using State = RankTrack::State;

bool is_live(std::uint8_t status) {
  return static_cast<plan::ParamStatus>(ev::status_of(status)) != plan::ParamStatus::not_available;
}

/// Statuses at the begin of the range, and all changes in it.
void read_statuses(const store::Store& store, std::uint32_t rank, const RankTracks::Wanted& wanted,
                   RankTrack& out) {
  if (!store.has_tables()) return;
  const auto& params = store.tables().params;
  std::vector<store::ParamState> states(params.size());
  const std::int64_t begin = out.range.begin_ns;
  store.param_states(rank, begin, states);
  const bool known = store.is_known(rank, begin);
  double live = 0;
  for (std::size_t i = 0; i < states.size(); ++i)
    live += is_live(states[i].status) ? static_cast<double>(params[i].elems) : 0;
  if (wanted.live && known) out.live.add(begin, live);
  for (const std::uint32_t param : wanted.params) {
    if (param < states.size()) out.status[param].push_back({begin, states[param], known});
  }
  store.for_each_instant(rank, begin, out.range.end_ns, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::param_status) return;
    const auto change = ev::as<ev::EventKind::param_status>(event);
    if (change.param >= states.size()) return;
    const auto at_ns = static_cast<std::int64_t>(event.ticks);
    store::ParamState& state = states[change.param];
    const bool was = is_live(state.status);
    state = {change.status.bits, change.cause, at_ns, change.module, change.gather};
    if (const bool is = is_live(state.status); is != was) {
      live += (is ? 1.0 : -1.0) * static_cast<double>(params[change.param].elems);
      if (wanted.live && known) out.live.add(at_ns, live);
    }
    const auto pieces = out.status.find(change.param);
    if (pieces != out.status.end()) pieces->second.push_back({at_ns, state, true});
  });
}

void read_in_flight(const store::Store& store, std::uint32_t rank, RankTrack& out) {
  std::vector<std::pair<std::int64_t, double>> changes;
  for (const ev::StreamId stream : {ev::StreamId::gather, ev::StreamId::reduce}) {
    const store::LaneId lane{rank, stream};
    analysis::for_each_span(store, lane, out.range.begin_ns, out.range.end_ns, [&](const store::Span& span) {
      if (span.kind != ev::EventKind::collective_begin) return;
      const auto bytes = static_cast<double>(ev::as<ev::EventKind::collective_begin>(span).bytes);
      changes.emplace_back(std::max(span.begin_ns, out.range.begin_ns), bytes);
      if (span.end_ns != store::kOpen) changes.emplace_back(span.end_ns, -bytes);
    });
  }
  // Ends sort before begins at the same time, so that adjacent operations do not add up.
  std::ranges::sort(changes);
  double now = 0;
  out.in_flight.add(out.range.begin_ns, now);
  for (const auto& [at_ns, bytes] : changes) out.in_flight.add(at_ns, now += bytes);
}

bool ready(const store::Store& store, std::uint32_t rank, TimeRange range, bool spans) {
  bool all = store.instants_ready(rank, range.begin_ns, range.end_ns);
  if (!spans) return all;
  for (const ev::StreamId stream : {ev::StreamId::gather, ev::StreamId::reduce})
    all = store.ready({rank, stream}, range.begin_ns, range.end_ns) && all;
  return all;
}

}  // namespace

const StatusPiece* piece_at(const std::vector<StatusPiece>& pieces, std::int64_t at_ns) {
  const auto after = std::ranges::upper_bound(pieces, at_ns, {}, &StatusPiece::begin_ns);
  return after == pieces.begin() ? nullptr : &*(after - 1);
}

void RankTracks::begin_frame(std::optional<std::chrono::nanoseconds> most) noexcept {
  std::erase_if(kept_, [&](const auto& one) { return one.second.frame != frame_; });
  ++frame_;
  until_.reset();
  if (most) until_ = Clock::now() + *most;
  waiting_ = stopped_ && kept_.contains(next_);
  stopped_ = read_one_ = behind_ = false;
}

bool RankTracks::fresh(const store::Store& store, const Kept& kept, TimeRange range,
                       const Wanted& wanted) const {
  const TimeRange& has = kept.track.range;
  if (kept.track.state == State::reading || kept.wanted != wanted) return false;
  const bool same = kept.revision == store.revision();
  if (kept.track.state == State::too_much) return same && has == range;
  if (range.begin_ns < has.begin_ns || range.end_ns > has.end_ns) return false;
  // Events arrive in every frame of a live run; curves may lag behind by this time.
  constexpr auto kLag = std::chrono::milliseconds(150);
  return same || (until_ && Clock::now() - kept.read_at < kLag);
}

const RankTrack& RankTracks::of(const store::Store& store, std::uint32_t rank, TimeRange range,
                                const Wanted& wanted) {
  Kept& kept = kept_[rank];
  kept.frame = frame_;
  if (next_ == rank) waiting_ = false;
  if (fresh(store, kept, range, wanted)) return kept.track;
  if (waiting_ || !has_time()) {
    if (!waiting_ && !std::exchange(stopped_, true)) next_ = rank;
    behind_ = true;
    return kept.track;
  }
  const bool spans = wanted.in_flight;
  const auto keep = [&](RankTrack&& track) {
    kept = {std::move(track), wanted, store.revision(), frame_, Clock::now()};
  };
  if (!store.instants_become_ready(rank, range.begin_ns, range.end_ns)) {
    RankTrack none;
    none.state = State::too_much;
    none.range = range;
    keep(std::move(none));
    return kept.track;
  }
  if (!ready(store, rank, range, spans)) {
    behind_ = true;
    return kept.track;
  }
  read_one_ = true;
  RankTrack track;
  track.state = State::read;
  track.range = range;
  // Half a length more on both sides if already loaded, for panning.
  const TimeRange wide{range.begin_ns - range.length() / 2, range.end_ns + range.length() / 2};
  if (until_ && store.instants_become_ready(rank, wide.begin_ns, wide.end_ns) &&
      ready(store, rank, wide, spans))
    track.range = wide;
  read_statuses(store, rank, wanted, track);
  if (wanted.in_flight) read_in_flight(store, rank, track);
  keep(std::move(track));
  return kept.track;
}

}  // namespace shardscope::gui
