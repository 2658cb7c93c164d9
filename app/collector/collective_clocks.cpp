#include "app/collector/collective_clocks.h"

#include <algorithm>

#include "app/collector/believable.h"
#include "instrumentation/event_fields.h"

namespace shardscope::collector {

using instrumentation::CollectiveOp;
using instrumentation::CollectiveScope;
using instrumentation::Event;
using instrumentation::EventKind;

namespace {
constexpr std::int64_t kUntold = INT64_MIN;
/// A collective's end without `collective_entered` is a stamp on a GPU's stream: what its conversion to the
/// host's clock may err by (half of what reading both clocks at once takes; runtime/device/cuda/stamper.h).
constexpr std::int64_t kStamp_ns = 20'000;
/// Between two that are watched, and for each rank: a window of the estimator sees a hundred, with 1,024
/// ranks thirty.
constexpr double kEvery_s = 0.02, kEveryOfRank_s = 1e-4;

/// Done only when every rank has brought its part.
bool ends_after_all(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_reduce:
    case CollectiveOp::barrier:
    case CollectiveOp::all_to_all:
      return true;
    case CollectiveOp::reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      return false;
  }
  return false;
}

bool among_all(instrumentation::CollectiveCode code) {
  return !code.known() || code.scope() == CollectiveScope::world;
}

/// Of a collective's begin, end or the moment at which all have come, which begin with the same fields.
instrumentation::Fields<EventKind::collective_begin> fields_of(const Event& event) noexcept {
  return instrumentation::as<EventKind::collective_begin>(event);
}
}  // namespace

void CollectiveMeetings::add(std::uint32_t rank, std::uint32_t world, std::span<const Event> events,
                             std::int64_t to_node_ns, std::int64_t error_ns, double now_s) {
  if (rank >= world || !believable(to_node_ns) || !believable(error_ns)) return;
  for (const Event& event : events) {
    if (event.kind == EventKind::collective_begin) {
      if (among_all(fields_of(event).code)) began(rank, world, event, to_node_ns, error_ns, now_s);
    } else if (event.kind == EventKind::collective_entered) {
      met(rank, event, to_node_ns, error_ns);
    } else if (event.kind == EventKind::collective_end && ends_after_all(fields_of(event).op) &&
               !fields_of(event).code.end_is_bound()) {
      met(rank, event, to_node_ns, error_ns + kStamp_ns);
    }
  }
}

void CollectiveMeetings::began(std::uint32_t rank, std::uint32_t world, const Event& event,
                               std::int64_t to_node_ns, std::int64_t error_ns, double now_s) {
  const auto at = static_cast<std::int64_t>(event.ticks);
  if (!believable(at)) return;
  Watched* watched = find(fields_of(event).sequence);
  // One that another rank has been through before could wait in vain for it.
  const bool first = !heard_ || static_cast<std::int32_t>(fields_of(event).sequence - newest_) > 0;
  if (first) {
    heard_ = true;
    newest_ = fields_of(event).sequence;
    if (watched == nullptr && now_s - admitted_s_ >= kEvery_s + kEveryOfRank_s * world) watched = room(now_s);
    if (watched != nullptr && !watched->in_use) {
      admitted_s_ = now_s;
      watched->sequence = fields_of(event).sequence;
      watched->op = fields_of(event).op;
      watched->in_use = true;
      watched->since_s = now_s;
      watched->missing = world;
      watched->of_ranks.assign(world, {kUntold, kUntold, 0});
      mark();
    }
  }
  if (watched == nullptr || watched->op != fields_of(event).op || watched->of_ranks.size() != world) return;
  Meeting& meeting = watched->of_ranks[rank];
  if (meeting.came_ns != kUntold) return;
  meeting.came_ns = at + to_node_ns;
  meeting.error_ns = error_ns;
}

void CollectiveMeetings::met(std::uint32_t rank, const Event& event, std::int64_t to_node_ns,
                             std::int64_t error_ns) {
  Watched* watched = find(fields_of(event).sequence);
  if (watched == nullptr || watched->op != fields_of(event).op || rank >= watched->of_ranks.size()) return;
  Meeting& meeting = watched->of_ranks[rank];
  const auto at = static_cast<std::int64_t>(event.ticks);
  if (meeting.came_ns == kUntold || meeting.met_ns != kUntold || !believable(at) ||
      at + to_node_ns < meeting.came_ns) {
    return;
  }
  meeting.met_ns = at + to_node_ns;
  meeting.error_ns = std::max(meeting.error_ns, error_ns);
  --watched->missing;
}

void CollectiveMeetings::mark() noexcept {
  marks_ = 0;
  for (const Watched& w : watched_) {
    if (w.in_use) marks_ |= std::uint64_t{1} << w.sequence % 64;
  }
}

CollectiveMeetings::Watched* CollectiveMeetings::find(std::uint32_t sequence) {
  if ((marks_ >> sequence % 64 & 1U) == 0) return nullptr;
  const auto at = std::find_if(watched_.begin(), watched_.end(),
                               [&](const Watched& w) { return w.in_use && w.sequence == sequence; });
  return at == watched_.end() ? nullptr : &*at;
}

CollectiveMeetings::Watched* CollectiveMeetings::room(double now_s) {
  for (Watched& w : watched_) {
    if (w.in_use && w.missing != 0 && now_s - w.since_s > kPatience_s) w.in_use = false;
    if (!w.in_use) return &w;
  }
  return nullptr;
}

std::optional<std::vector<Meeting>> CollectiveMeetings::take() {
  for (Watched& w : watched_) {
    if (!w.in_use || w.missing != 0) continue;
    w.in_use = false;
    mark();
    return std::move(w.of_ranks);
  }
  return std::nullopt;
}

std::size_t refine_clocks(std::span<const Meeting> meetings, std::span<ClockEstimator* const> clocks) {
  std::int64_t all_came = INT64_MIN;   // not before, on the collector's clock
  std::int64_t first_met = INT64_MAX;  // not after
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    if (clocks[i] == nullptr || !clocks[i]->known()) continue;
    const Meeting& m = meetings[i];
    all_came = std::max(all_came, m.came_ns + clocks[i]->bounds(m.came_ns).low_ns - m.error_ns);
    first_met = std::min(first_met, m.met_ns + clocks[i]->bounds(m.met_ns).high_ns + m.error_ns);
  }
  if (all_came == INT64_MIN) return 0;
  std::size_t contradictions = 0;
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    if (clocks[i] == nullptr || !clocks[i]->known() || clocks[i]->is_same_clock()) continue;
    const Meeting& m = meetings[i];
    contradictions += !clocks[i]->refine(m.met_ns, all_came - m.met_ns - m.error_ns, m.came_ns,
                                         first_met - m.came_ns + m.error_ns);
  }
  return contradictions;
}

}  // namespace shardscope::collector
