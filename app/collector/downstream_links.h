// Links from a collector to its ranks and to nodes' collectors: outgoing messages and their numbers,
// receipts, and the answers awaited at the end of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/collector/collector_pace.h"
#include "app/collector/collector_sockets.h"
#include "app/collector/nodes.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "app/store/retention.h"
#include "instrumentation/host_clock.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class DownstreamLinks {
 public:
  /// `header`: of the messages that the collector sends. Both must outlive this object.
  DownstreamLinks(CollectorSockets& sockets, const wire::Header& header)
      : sockets_(sockets), header_(header) {}

  /// Collectors of nodes; a route is a control identity.
  [[nodiscard]] Nodes& nodes() noexcept { return nodes_; }

  enum class Sent : std::uint8_t {
    taken,
    full,    ///< the send queue is full, or sending failed otherwise; not sent
    closed,  ///< the connection is closed; not sent
  };
  /// Sends to a rank, over its own connection or its node's. Without one: discards the message, `taken`.
  Sent send(const RankSession& rank, wire::Body body);
  [[nodiscard]] wire::Ping next_ping(std::int64_t sent_ns, const CollectorPace& pace) noexcept {
    return {++ping_id_, sent_ns, pace.look_ms, pace.pack_ms};
  }
  /// Pings the nodes that are due.
  void ping_nodes(double now_s, const instrumentation::HostClock& clock, const CollectorPace& pace);
  /// Asks each node's collector once to keep the interval around `moment` (times of this collector's clock).
  /// Returns the hosts of the nodes that are silent, or whose connection did not accept the message.
  [[nodiscard]] std::vector<std::string> ask_nodes_to_keep(const store::Moment& moment);
  /// Sends the reason `why` to a refused peer, to each route at most once in kRepeatRefusal_s.
  void refuse(const std::string& route, const wire::Header& to, const std::string& why, double now_s);

  /// Queues a confirmation of a relayed rank's messages, sent together with those of its node's other ranks.
  void queue_receipt(RankSession& rank) {
    receipts_due_[rank.route].insert(rank.row.rank);
    rank.receipt_pending = true;
  }
  /// Sends one message for each node: a message for each of thousands of ranks would cost as much as theirs.
  /// Receipts that a node's connection does not accept are sent again later.
  using Send = std::function<Sent(RankSession&, wire::Body)>;
  void send_receipts(RankTable& ranks, double now_s, const Send& send);

  /// Confirms that the end of the rank was received. If the connection does not accept the message, it is
  /// sent again later (RankSession::end_unconfirmed).
  void confirm_end(RankSession& rank, const Send& send);
  /// Begins to await an answer of the rank, or of its node, to the message just sent.
  void await_answer(RankSession& rank);
  /// Whether some ranks may not have read the confirmation of their end yet, see [Note: who knows of an end].
  [[nodiscard]] bool answers_awaited(RankTable& ranks, double now_s);

 private:
  Sent send(const std::string& route, const wire::Message& message);

  CollectorSockets& sockets_;
  const wire::Header& header_;
  Nodes nodes_;
  std::uint64_t ping_id_ = 0;
  std::map<std::string, std::set<std::uint32_t>> receipts_due_;  ///< ranks, by their node's route
  std::map<std::string, double> refused_;  ///< control identity -> when it was last sent the reason
  double next_ask_s_ = 0;                  ///< at the end, for answers
};

}  // namespace shardscope::collector
