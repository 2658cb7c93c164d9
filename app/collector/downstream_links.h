// The links of a collector to what is below it: messages to its ranks and to the collectors of nodes, their
// numbers, receipts, and what is awaited of them at the end.
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
  /// `header`: of what the collector sends. Both must outlive it.
  DownstreamLinks(CollectorSockets& sockets, const wire::Header& header)
      : sockets_(sockets), header_(header) {}

  /// Collectors of nodes; a route is a control identity.
  [[nodiscard]] Nodes& nodes() noexcept { return nodes_; }

  enum class Sent : std::uint8_t {
    taken,
    full,    ///< too much is under way; not sent
    closed,  ///< the connection; not sent
  };
  /// To a rank, over its own connection or its node's. One that has none takes nothing.
  Sent send(const RankSession& rank, wire::Body body);
  [[nodiscard]] wire::Ping next_ping(std::int64_t sent_ns, const CollectorPace& pace) noexcept {
    return {++ping_id_, sent_ns, pace.look_ms, pace.pack_ms};
  }
  /// Those that are due.
  void ping_nodes(double now_s, const instrumentation::HostClock& clock, const CollectorPace& pace);
  /// Asks each node's collector once to keep what lies around `moment`, whose times are on this collector's
  /// clock. Returns the hosts of those that are not reached or did not take it.
  [[nodiscard]] std::vector<std::string> ask_nodes_to_keep(const store::Moment& moment);
  /// Says `why` to who is refused; again only after a while.
  void refuse(const std::string& route, const wire::Header& to, const std::string& why, double now_s);

  /// What has been received of a rank of a node is to be confirmed, with the others of its node.
  void queue_receipt(RankSession& rank) {
    receipts_due_[rank.route].insert(rank.row.rank);
    rank.receipt_pending = true;
  }
  /// One message for each node: to thousands of ranks they would be as many as their messages. What a node
  /// does not take is sent again later.
  using Send = std::function<Sent(RankSession&, wire::Body)>;
  void send_receipts(RankTable& ranks, double now_s, const Send& send);

  /// Confirms that the end of the rank was received. What is not taken is sent again later
  /// (RankSession::end_unconfirmed).
  void confirm_end(RankSession& rank, const Send& send);
  /// An answer is awaited of the rank or of its node, to what has just been sent.
  void await_answer(RankSession& rank);
  /// Some of those whose end was received may not know it yet, see [Note: who knows of an end].
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
