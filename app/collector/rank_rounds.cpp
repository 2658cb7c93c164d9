// Timer-driven work per rank: its chunk, its row, confirmations, pings, liveness. A round handles the ranks
// that are due (RankTable), so that its cost does not grow with all ranks.
#include <set>
#include <string>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"

namespace shardscope::collector {

void Collector::State::run_due_timers(double now) {
  for (const std::uint32_t id : ranks.take_due(now)) {
    RankSession* const known = ranks.known(id);
    if (known == nullptr) continue;  // removed meanwhile
    RankSession& rank = *known;
    flush_if_due(rank, now);
    confirm_and_ping(rank, now);
    if (rank.node_clock != nullptr && rank.row.connected) liveness.check_silence(rank, now);
    publish_row(rank, now, false);
    ranks.serviced(rank, now);
  }
}

void Collector::State::flush_if_due(RankSession& rank, double now) {
  if (!record.has_room()) return;  // only pending events can still be shed
  // The first chunk waits for the first round trips: later offsets are not applied to it.
  if (!rank.clock_settled(now)) return;
  if (rank.due(now, ranks.chunk_age_s(rank)) || (rank.pending() && rank.row.gate.holding)) record.flush(rank);
}

void Collector::State::confirm_and_ping(RankSession& rank, double now) {
  // Together with a ping where one is due: the rank wakes up once for both.
  if (rank.unconfirmed() != 0 && (now - rank.confirmed_s() >= RankSession::kConfirmAfter_s ||
                                  (rank.node_clock == nullptr && now >= rank.next_ping_s))) {
    sender.confirm(rank);
  }
  if (rank.end_unconfirmed && rank.row.finished) sender.confirm_finish(rank);
  if (rank.route.empty() || rank.node_clock != nullptr || now < rank.next_ping_s) return;
  sender.send(rank, down.next_ping(messages.clock_now(), pacing.pace()));
  // The first few quickly, so that the first chunks already have a good offset.
  ++rank.pings;
  rank.next_ping_s = now + (rank.settled() ? 1.0 : 0.02);
}

void Collector::State::publish_row(RankSession& rank, double now, bool at_once) {
  if (!identity.known()) return;  // a rank that has only sent a hello may be of another run
  if (!rank.row_dirty || (!at_once && now - rank.row_sent_s < pacing.pace().row_s)) return;
  rank.row_sent_s = now;
  rank.revision = shown.changed();
  // A recorder that is far behind gets the counters later.
  if (!at_once && record.far_behind()) return;
  rank.row_dirty = false;
  record.recorder().rank(rank.row);
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
    liveness.check(rank, now);
  }
  board.connected(ranks.counts().connected());
}

}  // namespace shardscope::collector
