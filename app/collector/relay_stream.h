// What a node's collector passes on of one process of a rank: what waits, what has been sent and not
// confirmed, and what the collector above is to know of the rank's own numbering.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>
#include <zmq.hpp>

#include "app/collector/discarded_events.h"
#include "app/collector/rank_session.h"
#include "app/collector/shared_lists.h"
#include "instrumentation/send_queue.h"
#include "instrumentation/sent_window.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

/// Used by the collector's thread.
struct RelayStream {
  explicit RelayStream(const RankSession& session)
      : rank(&session),
        queue(0, instrumentation::SendQueue::Last::keep),
        window(0),
        first_message_s(session.first_message_s) {}
  /// Of the process that published it.
  [[nodiscard]] const ClockEstimator& clock() const {
    return own_clock ? *own_clock : rank->clock_of(source);
  }
  /// Puts what the rank published next, in one batch what waits behind it as far as it may, into `window`.
  /// Only where something waits.
  void encode_next();
  /// Everything before message `next_message` has been received above.
  void confirm(std::uint64_t next_message);
  [[nodiscard]] bool all_sent() const noexcept { return queue.empty() && window.all_sent(); }

  /// The totals as of one message of the node's.
  struct Totals {
    std::uint64_t sequence = 0, dropped = 0, lost = 0;
  };

  const RankSession* rank;
  std::optional<ClockEstimator> own_clock;  ///< as it was when another process replaced this one
  instrumentation::SendQueue queue;
  instrumentation::SentWindow window;  ///< sent, and not confirmed by the collector above
  wire::Header header;
  std::uint64_t source = 0, next = 0;  ///< the process, its next message number
  std::uint64_t reported = 0;          ///< first message number that no batch sent upstream covers
  std::uint64_t dropped_total = 0, lost_total = 0;
  /// Kept, with what follows, for an upper collector that starts anew.
  std::optional<SharedLists::Tables> tables;
  std::vector<wire::Name> names;
  std::optional<wire::Finish> finish;
  bool acknowledged = false, full = false;
  Totals confirmed;                 ///< as of the last message that has a receipt
  std::deque<Totals> totals_sent;   ///< where they changed, in messages without one
  std::int64_t clock_error_ns = 0;  ///< of the last batch
  DiscardedEvents discarded;        ///< of earlier processes of the rank
  /// What it publishes later has reached no other collector. On this node's clock.
  std::int64_t began_ns = 0;
  double first_message_s;  ///< first; its wait for a clock begins there, whatever waits before it

 private:
  /// What the rank published next, and what waits behind it as far as one batch may have it.
  [[nodiscard]] wire::Body take_next();
};

}  // namespace shardscope::collector
