// What comes by time of each rank: its chunk, its row, confirmations, pings, whether it is still there. A
// round takes the ranks whose time has come (RankAgenda), so that its work is not that of all ranks.
//
// [Note: what a rank waits for]
// note_change() is called where anything of a rank has changed that something is due by: it notes the
// earliest time. What makes it later need not be noted: the rank is looked at too early once, and its next
// time is noted then.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"
#include "app/store/silences.h"

namespace shardscope::collector {

namespace {
constexpr double kLookAgain_s = 0.01;    ///< at what could not be done
constexpr double kClockComes_s = 0.02;   ///< between two looks for a clock, or for what run it is
constexpr double kSilentAfter_s = 6;     ///< a rank sends a message at least every second
constexpr double kStoppedAfter_s = 2.5;  ///< the same, where its process is seen to be stopped

/// As the operating system says: stopped by a signal or by a debugger.
bool is_stopped(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The name, in parentheses, may hold anything.
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}
}  // namespace

double Collector::State::due_s(const RankSession& rank, double now) const {
  const CollectorPace& pace = pacing.pace();
  double at = std::numeric_limits<double>::infinity();
  const auto by = [&at](double when) { at = std::min(at, when); };
  if (rank.pending()) {
    const bool waits = !clock_settled(rank, now);
    by(waits ? now + kClockComes_s : rank.row.gate.holding ? now : rank.due_s(pace.chunk_age_s));
  }
  if (rank.row_dirty) by(identity.known() ? rank.row_sent_s + pace.row_s : now + kClockComes_s);
  if (rank.route.empty()) return at;
  if (rank.unconfirmed() != 0) by(rank.confirmed_s() + RankSession::kConfirmAfter_s);
  if (rank.node_clock == nullptr) {
    by(rank.next_ping_s);
  } else if (rank.row.connected && !rank.row.finished) {
    by(rank.last_control_s + kSilentAfter_s + kLookAgain_s);
  }
  return at;
}

void Collector::State::note_change(RankSession& rank, double now) {
  agenda.look(rank.row.rank, due_s(rank, now));
  RankCensus::Traits traits;
  traits.connected = rank.row.connected;
  traits.finished = rank.row.finished;
  traits.unsettled = rank.row.connected && !rank.row.finished && !rank.settled();
  traits.holding = rank.row.gate.holding;
  traits.other_clock = !rank.refinable_clock().is_same_clock();
  traits.here = rank.row.connected && rank.node_clock == nullptr;
  census.note(rank.row.rank, traits);
}

void Collector::State::note_change_of_all(double now) {
  for (auto& [id, rank] : ranks) note_change(rank, now);
}

void Collector::State::look_at_due(double now) {
  for (const std::uint32_t id : agenda.take(now)) {
    const auto known = ranks.find(id);
    if (known == ranks.end()) continue;  // forgotten meanwhile
    RankSession& rank = known->second;
    flush_if_due(rank, now);
    confirm_and_ping(rank, now);
    if (rank.node_clock != nullptr && rank.row.connected) look_for_silence(rank, now);
    publish_row(rank, now, false);
    note_change(rank, now);
    agenda.look(id, std::max(due_s(rank, now), now + kLookAgain_s));
  }
}

bool Collector::State::clock_settled(const RankSession& rank, double now) {
  return rank.clock_known() || now - rank.first_message_s >= RankSession::kClockWait_s;
}

void Collector::State::flush_if_due(RankSession& rank, double now) {
  if (!recorder_has_room()) return;  // they are only there while they can still be shed
  // The first chunk waits for the first round trips: an offset that comes later does not reach it.
  if (!clock_settled(rank, now)) return;
  if (rank.due(now, pacing.pace().chunk_age_s) || (rank.pending() && rank.row.gate.holding)) flush(rank);
}

void Collector::State::confirm_and_ping(RankSession& rank, double now) {
  // With a ping where there is one: the rank wakes for both.
  if (rank.unconfirmed() != 0 && (now - rank.confirmed_s() >= RankSession::kConfirmAfter_s ||
                                  (rank.node_clock == nullptr && now >= rank.next_ping_s))) {
    confirm(rank);
  }
  if (rank.route.empty() || rank.node_clock != nullptr || now < rank.next_ping_s) return;
  send_to_rank(rank, wire::Ping{++ping_id, clock_now(), pacing.pace().look_ms});
  // The first few quickly, so that the first chunks already have a good offset.
  ++rank.pings;
  rank.next_ping_s = now + (rank.settled() ? 1.0 : 0.02);
}

void Collector::State::publish_row(RankSession& rank, double now, bool at_once) {
  if (!identity.known()) return;  // a rank that has only said hello may be of another run
  if (!rank.row_dirty || (!at_once && now - rank.row_sent_s < pacing.pace().row_s)) return;
  rank.row_sent_s = now;
  rank.revision = ++revision;
  // A recorder that is far behind gets the counters later.
  if (!at_once && recorder->queued_bytes() > options.intake_bytes / 2) return;
  rank.row_dirty = false;
  recorder->rank(rank.row);
}

// [Note: silent, not gone]
// The kernel closes the connections of a process that ends, however it ends, and a send to a closed one fails
// (router_mandatory): that rank is lost. One that sends nothing over a connection that lasts is stopped, or
// its host or network stands still. It may go on any time, so it stays connected, and only a pause does not
// wait for it. What a node's collector passes on has no connection here: that collector names the ranks that
// it is connected to, and those of them that are silent (on_node()). The texts of a silence are of the
// collector that has the connection, and passed on; but that a rank has been restarted each one says itself,
// because the text of a process that is gone might not get here.
void Collector::State::look_for_silence(RankSession& rank, double now) {
  const double silent_s = now - rank.last_control_s;
  if (rank.row.finished || silent_s < kStoppedAfter_s) return;
  if (rank.node_clock != nullptr) {
    if (silent_s > kSilentAfter_s)
      lost(rank, "has not been at its node's collector for " +
                     std::to_string(static_cast<int>(kSilentAfter_s)) + " s");
    return;
  }
  if (rank.silent()) return;
  const bool stopped = rank.pid_seen && is_stopped(rank.row.pid);
  if (!stopped && silent_s <= kSilentAfter_s) return;
  begin_silence(rank, now);
  say_of(rank, Severity::warning, store::silent_message(rank.row.rank, silent_s, stopped ? rank.row.pid : 0));
}

void Collector::State::look_after_ranks(double now) {
  look_after_nodes(now);
  look_at_due(now);
  if (!pacing.liveness_due(now)) return;
  count_refused(sockets.guard.overdue(now));
  const std::vector<std::uint32_t> here(census.here().begin(), census.here().end());  // lost() changes it
  for (const std::uint32_t id : here) {
    RankSession& rank = session(id);
    if (!rank.row.connected) continue;
    if (rank.pid_seen && kill(rank.row.pid, 0) != 0 && errno == ESRCH) {
      lost(rank, "(process " + std::to_string(rank.row.pid) + ") is gone");
    } else {
      look_for_silence(rank, now);
    }
  }
  const std::lock_guard lock(status_mutex);
  status.ranks_connected = census.connected();
}

}  // namespace shardscope::collector
