// The messages of one process of a rank that a node's collector relays: queued ones, sent and unconfirmed
// ones, and the state of the rank's own numbering for the collector above.
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
  /// Clock of the process that published the messages.
  [[nodiscard]] const ClockEstimator& clock() const {
    return own_clock ? *own_clock : rank->clock_of(source);
  }
  /// Encodes the next queued message into `window`, batches joined as far as possible ([Note: joined
  /// batches]). The queue must not be empty.
  void encode_next();
  /// The collector above has received all messages before number `next_message`.
  void confirm(std::uint64_t next_message);
  [[nodiscard]] bool all_sent() const noexcept { return queue.empty() && window.all_sent(); }

  /// Totals as sent with message `sequence` of this hop's numbering.
  struct Totals {
    std::uint64_t sequence = 0, dropped = 0, lost = 0;
  };

  const RankSession* rank;
  std::optional<ClockEstimator> own_clock;  ///< copy made when another process replaced this one
  instrumentation::SendQueue queue;
  instrumentation::SentWindow window;  ///< sent, and not confirmed by the collector above
  wire::Header header;
  std::uint64_t source = 0, next = 0;  ///< the process, and its next message number
  std::uint64_t reported = 0;          ///< first message number that no batch sent upstream covers
  std::uint64_t dropped_total = 0, lost_total = 0;
  /// Stored, with the next two members, to send them again to a restarted upper collector.
  std::optional<SharedLists::Tables> tables;
  std::vector<wire::Name> names;
  std::optional<wire::Finish> finish;
  bool acknowledged = false, full = false;
  Totals confirmed;                 ///< as of the last confirmed message
  std::deque<Totals> totals_sent;   ///< their changes, in unconfirmed messages
  std::int64_t clock_error_ns = 0;  ///< of the last batch
  DiscardedEvents discarded;        ///< of earlier processes of the rank
  /// Events after this time have reached no other collector. On this node's clock.
  std::int64_t began_ns = 0;
  double first_message_s;  ///< time of its first message: from then on it waits for its clock

 private:
  /// Removes and returns the next queued message, with the batches behind it that may_join().
  [[nodiscard]] wire::Body take_next();
};

}  // namespace shardscope::collector
