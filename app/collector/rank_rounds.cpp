// Timer-driven work per rank: its chunk, its row, confirmations, pings, liveness. A round handles the ranks
// that are due (RankTable), so that its cost does not grow with all ranks.
#include <cerrno>
#include <csignal>
#include <fstream>
#include <set>
#include <string>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"
#include "app/store/silences.h"

namespace shardscope::collector {

namespace {
constexpr double kSilentAfter_s = RankTable::kSilentAfter_s;
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

void Collector::State::run_due_timers(double now) {
  for (const std::uint32_t id : ranks.take_due(now)) {
    RankSession* const known = ranks.known(id);
    if (known == nullptr) continue;  // forgotten meanwhile
    RankSession& rank = *known;
    flush_if_due(rank, now);
    confirm_and_ping(rank, now);
    if (rank.node_clock != nullptr && rank.row.connected) check_silence(rank, now);
    publish_row(rank, now, false);
    ranks.serviced(rank, now);
  }
}

void Collector::State::flush_if_due(RankSession& rank, double now) {
  if (!record.has_room()) return;  // they are only there while they can still be shed
  // The first chunk waits for the first round trips: an offset that comes later does not reach it.
  if (!rank.clock_settled(now)) return;
  if (rank.due(now, ranks.chunk_age_s(rank)) || (rank.pending() && rank.row.gate.holding)) record.flush(rank);
}

void Collector::State::confirm_and_ping(RankSession& rank, double now) {
  // With a ping where there is one: the rank wakes for both.
  if (rank.unconfirmed() != 0 && (now - rank.confirmed_s() >= RankSession::kConfirmAfter_s ||
                                  (rank.node_clock == nullptr && now >= rank.next_ping_s))) {
    confirm(rank);
  }
  if (rank.end_unconfirmed && rank.row.finished) confirm_finish(rank);
  if (rank.route.empty() || rank.node_clock != nullptr || now < rank.next_ping_s) return;
  send_to_rank(rank, down.next_ping(messages.clock_now(), pacing.pace()));
  // The first few quickly, so that the first chunks already have a good offset.
  ++rank.pings;
  rank.next_ping_s = now + (rank.settled() ? 1.0 : 0.02);
}

void Collector::State::publish_row(RankSession& rank, double now, bool at_once) {
  if (!identity.known()) return;  // a rank that has only said hello may be of another run
  if (!rank.row_dirty || (!at_once && now - rank.row_sent_s < pacing.pace().row_s)) return;
  rank.row_sent_s = now;
  rank.revision = shown.changed();
  // A recorder that is far behind gets the counters later.
  if (!at_once && record.far_behind()) return;
  rank.row_dirty = false;
  record.recorder().rank(rank.row);
}

// [Note: silent, not gone]
// The kernel closes the connections of a process that ends, however it ends, and a send to a closed one fails
// (router_mandatory): that rank is lost. One that sends nothing over a connection that lasts is stopped, or
// its host or network is down. It may go on any time, so it stays connected, and only a pause does not
// wait for it. What a node's collector passes on has no connection here: that collector names the ranks that
// it is connected to, and those of them that are silent (on_node()). The texts of a silence are of the
// collector that has the connection, and passed on; but that a rank has been restarted each one says itself,
// because the text of a process that is gone might not get here.
void Collector::State::check_silence(RankSession& rank, double now) {
  const double silent_s = now - rank.last_control();
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
  messages.report_rank(rank, Severity::warning,
                       store::silent_message(rank.row.rank, silent_s, stopped ? rank.row.pid : 0));
}

void Collector::State::service_ranks(double now) {
  service_nodes(now);
  run_due_timers(now);
  if (!pacing.liveness_due(now)) return;
  problems.refused(sockets.guard.overdue(now));
  const std::set<std::uint32_t> here = ranks.counts().here();  // lost() changes it
  for (const std::uint32_t id : here) {
    RankSession& rank = ranks.session(id);
    if (!rank.row.connected) continue;
    if (rank.pid_seen && kill(rank.row.pid, 0) != 0 && errno == ESRCH) {
      lost(rank, "(process " + std::to_string(rank.row.pid) + ") is gone");
    } else {
      check_silence(rank, now);
    }
  }
  board.connected(ranks.counts().connected());
}

}  // namespace shardscope::collector
