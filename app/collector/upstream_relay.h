// Relays messages between the ranks of a node and the collector above. Owns the connection to that collector
// (Upstream) and the state between both sides (RelayProgress); without a collector above this one is the top.
// Called by the collector's thread.
#pragma once

#include <functional>
#include <optional>
#include <zmq.hpp>

#include "app/collector/pacing.h"
#include "app/collector/pause_coordinator.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "app/collector/relay_progress.h"
#include "app/collector/run_identity.h"
#include "app/collector/status_board.h"
#include "app/collector/upstream.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class UpstreamRelay {
 public:
  /// All must outlive it. `linger_s`: as CollectorOptions::linger_s.
  UpstreamRelay(RankTable& ranks, PauseCoordinator& pauses, StatusBoard& board, const Pacing& pacing,
                const RunIdentity& identity, double linger_s)
      : ranks_(ranks),
        pauses_(pauses),
        board_(board),
        pacing_(pacing),
        identity_(identity),
        linger_s_(linger_s) {}

  /// Sends a message to a rank below.
  using Send = std::function<void(RankSession&, wire::Body)>;
  /// Connects to a collector above. `options.command` is not used: commands are sent to ranks by `send`.
  void start(zmq::context_t& context, UpstreamOptions options, Send send);
  [[nodiscard]] bool is_top() const noexcept { return !upstream_; }
  /// Null: this collector is the top.
  [[nodiscard]] Upstream* upstream() noexcept { return upstream_ ? &*upstream_ : nullptr; }
  /// As Upstream's; the top relays nothing: it is never full nor watched, and always drained.
  [[nodiscard]] bool full() const noexcept { return upstream_ && upstream_->full(); }
  [[nodiscard]] bool watched() const noexcept { return upstream_ && upstream_->watched(); }
  [[nodiscard]] bool drained() const { return !upstream_ || upstream_->drained(); }

  // Only where there is a collector above.
  /// Sends queued messages, and sets whether the run is over for this collector. True where more events were
  /// shed from the queues since the last call.
  [[nodiscard]] bool forward();
  /// Relays a rank's answer or position: the collector above coordinates pauses among all ranks.
  void pass_control(const wire::Message& message);

 private:
  void pass_command(std::uint32_t rank, wire::RankCommand command);

  RankTable& ranks_;
  PauseCoordinator& pauses_;
  StatusBoard& board_;
  const Pacing& pacing_;
  const RunIdentity& identity_;
  double linger_s_;
  Send send_;
  std::optional<Upstream> upstream_;
  RelayProgress progress_;
};

}  // namespace shardscope::collector
