// Messages from the collector to its ranks: commands, confirmations, requests for tables. Where a connection
// is found closed its ranks are lost. Owns nothing: the links are in DownstreamLinks. Called by the
// collector's thread.
#pragma once

#include "app/collector/downstream_links.h"
#include "app/collector/pause_coordinator.h"
#include "app/collector/rank_liveness.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class RankSender {
 public:
  /// All must outlive it.
  RankSender(RankTable& ranks, DownstreamLinks& down, PauseCoordinator& pauses, RankLiveness& liveness)
      : ranks_(ranks), down_(down), pauses_(pauses), liveness_(liveness) {}

  using Sent = DownstreamLinks::Sent;
  /// Sends a message to a rank; a command without a number gets the next.
  Sent send(RankSession& rank, wire::Body body);
  /// Sends the pending commands of the pause coordinator.
  void send_commands();
  void ask_for_tables(RankSession& rank);
  void confirm_finish(RankSession& rank);
  /// Confirms the rank's received messages: at once, or with its node's other ranks by send_receipts().
  void confirm(RankSession& rank);
  void send_receipts(double now);

 private:
  /// The rank is lost; with a node's connection all ranks of the node are.
  void connection_closed(RankSession& rank);

  RankTable& ranks_;
  DownstreamLinks& down_;
  PauseCoordinator& pauses_;
  RankLiveness& liveness_;
};

}  // namespace shardscope::collector
