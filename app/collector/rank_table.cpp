#include "app/collector/rank_table.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardscope::collector {

namespace {
constexpr double kServiceAgain_s = 0.01;  ///< least time until a rank is serviced again
constexpr double kEndAgain_s = 0.1;       ///< interval of retries to confirm an end
constexpr double kClockComes_s = 0.02;    ///< between two checks whether the clock, or the run, is known
}  // namespace

void RankTable::forget_unpublished(const std::function<void(const RankSession&)>& forgotten) {
  std::erase_if(ranks_, [&](const auto& entry) {
    if (entry.second.has_published()) return false;
    forgotten(entry.second);
    counts_.forget(entry.first);
    timers_.forget(entry.first);
    return true;
  });
}

void RankTable::add_states(wire::ViewReply& reply, std::uint64_t known) const {
  for (const auto& [id, rank] : ranks_) {
    if (rank.revision <= known && known != 0) continue;
    const store::RankRow& row = rank.row;
    wire::RankState state;
    state.rank = id;
    state.connected = row.connected;
    state.finished = row.finished;
    state.exit_code = row.exit_code;
    state.pid = row.pid;
    state.host = row.host;
    state.exit_message = row.exit_message;
    state.events = row.events;
    state.dropped = row.dropped;
    state.lost_messages = row.lost_messages;
    state.clock_offset_ns = row.clock_offset_ns;
    state.clock_residual_ns = row.clock_residual_ns;
    state.last_ns = row.last_ns;
    state.gate.position = row.gate;
    reply.ranks.push_back(std::move(state));
  }
}

double RankTable::due_s(const RankSession& rank, double now_s) const {
  const CollectorPace& pace = pacing_.pace();
  double at = std::numeric_limits<double>::infinity();
  const auto by = [&at](double when) { at = std::min(at, when); };
  if (rank.pending()) {
    const bool waits = !rank.clock_settled(now_s);
    by(waits ? now_s + kClockComes_s : rank.row.gate.holding ? now_s : rank.due_s(chunk_age_s(rank)));
  }
  if (rank.row_dirty) by(identity_.known() ? rank.row_sent_s + pace.row_s : now_s + kClockComes_s);
  if (rank.route.empty()) return at;
  if (rank.unconfirmed() != 0 && !rank.receipt_pending) by(rank.confirmed_s() + RankSession::kConfirmAfter_s);
  if (rank.end_unconfirmed) by(now_s + kEndAgain_s);
  if (rank.node_clock == nullptr) {
    by(rank.next_ping_s);
  } else if (rank.row.connected && !rank.row.finished && rank.listed_s == nullptr) {
    by(rank.last_control_s + kSilentAfter_s + kServiceAgain_s);
  }
  return at;
}

void RankTable::count(const RankSession& rank) {
  RankCounts::Traits traits;
  traits.connected = rank.row.connected;
  traits.finished = rank.row.finished;
  traits.unsettled = rank.row.connected && !rank.row.finished && !rank.settled();
  traits.holding = rank.row.gate.holding;
  traits.other_clock = !rank.refinable_clock().is_same_clock();
  traits.here = rank.row.connected && rank.node_clock == nullptr;
  counts_.note(rank.row.rank, traits);
}

void RankTable::note_change(const RankSession& rank, double now_s) {
  timers_.schedule(rank.row.rank, due_s(rank, now_s));
  count(rank);
}

void RankTable::note_change_of_all(double now_s) {
  for (const auto& [id, rank] : ranks_) note_change(rank, now_s);
}

void RankTable::serviced(const RankSession& rank, double now_s) {
  timers_.schedule(rank.row.rank, std::max(due_s(rank, now_s), now_s + kServiceAgain_s));
  count(rank);
}

}  // namespace shardscope::collector
