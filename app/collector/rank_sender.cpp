#include "app/collector/rank_sender.h"

#include <string>
#include <utility>

#include "app/collector/now.h"

namespace shardscope::collector {

namespace {
constexpr double kTablesAgain_s = 0.5;  ///< interval of requests for tables that have not arrived
}  // namespace

void RankSender::send_commands() {
  for (PauseCoordinator::Outgoing& out : pauses_.take_outgoing()) {
    RankSession& rank = ranks_.session(out.rank);
    // A command that moves a rank also ends its hold here; the rank's own Position follows.
    send(rank, out.command);
  }
}

RankSender::Sent RankSender::send(RankSession& rank, wire::Body body) {
  if (rank.route.empty()) return Sent::closed;
  if (auto* command = std::get_if<wire::RankCommand>(&body); command != nullptr && command->id == 0) {
    body = pauses_.numbered(*command);
  }
  const Sent sent = down_.send(rank, std::move(body));
  if (sent == Sent::closed) connection_closed(rank);
  return sent;
}

void RankSender::connection_closed(RankSession& rank) {
  constexpr const char* kWhy = "closed its connection";
  if (rank.node_clock == nullptr) return liveness_.lost(rank, kWhy);
  const std::string route = rank.route;  // lost() clears it
  for (auto& [id, other] : ranks_) {
    if (other.route == route) liveness_.lost(other, kWhy);
  }
}

void RankSender::confirm_finish(RankSession& rank) {
  down_.confirm_end(rank, [this](RankSession& to, wire::Body body) { return send(to, std::move(body)); });
}

void RankSender::confirm(RankSession& rank) {
  if (rank.route.empty()) return;
  if (rank.node_clock != nullptr) {
    down_.queue_receipt(rank);
    return;
  }
  const RankSession::Confirmation what = rank.confirmation();
  if (send(rank, wire::Received{what.source, what.next, {}}) == Sent::taken) rank.confirmed(now_s());
}

void RankSender::send_receipts(double now) {
  down_.send_receipts(ranks_, now,
                      [this](RankSession& rank, wire::Body body) { return send(rank, std::move(body)); });
}

void RankSender::ask_for_tables(RankSession& rank) {
  const double now = now_s();
  if (now - rank.tables_asked_s < kTablesAgain_s) return;
  if (!rank.route.empty()) rank.tables_asked_s = now;
  wire::RankCommand ask;
  ask.kind = wire::RankCommand::Kind::resend_tables;
  send(rank, ask);
}

}  // namespace shardscope::collector
