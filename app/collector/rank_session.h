// The collector's state of one rank: order and completeness of its messages, its clock, and its pending
// events, which become its next chunks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/awaited_answer.h"
#include "app/collector/clock_estimator.h"
#include "app/store/chunk.h"
#include "app/store/compaction.h"
#include "app/store/store.h"
#include "instrumentation/shedding.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

namespace wire = instrumentation::wire;

class RankSession {
 public:
  explicit RankSession(std::uint32_t rank) { row.rank = rank; }

  /// Classification of a message by its sender and number.
  enum class Order : std::uint8_t {
    next,         ///< as expected, or after a gap that has been counted
    again,        ///< received before; sent again over another connection, since unconfirmed then: ignore
    duplicate,    ///< replayed or out of order: ignore
    stale,        ///< of a process that was replaced: ignore
    implausible,  ///< its number implies a gap larger than a process can cause: ignore
  };
  struct Accepted {
    Order order = Order::next;
    bool new_process = false;   ///< first message of this process
    std::uint64_t missing = 0;  ///< messages lost just before it
  };
  /// `now_s`: time of arrival, on a monotonic clock.
  [[nodiscard]] Accepted accept(const wire::Header& header, double now_s);

  // [Note: what is sent twice]
  // A connection that is cut loses the messages in flight, which its sender counts as sent. So a sender keeps
  // sent messages until their receipt is confirmed (wire::Received), and sends them again, in order, over the
  // next connection. The old connection may have delivered some of them, or may still deliver them: each
  // connection delivers numbers without a gap, beginning at or before the expected one, so no message is lost
  // in between, and a duplicate is recognized by its number. Only a message whose confirmation may not have
  // reached the sender may arrive twice; an older one is a replay. A confirmation counts as received once a
  // control message of the process arrives kConfirmationLasts_s after it, over the same connection. Until
  // then a duplicate is confirmed again: a sender with a full window would wait for that forever.
  struct Confirmation {
    std::uint64_t source = 0, next = 0;
  };
  /// The confirmation to send to the process now.
  [[nodiscard]] Confirmation confirmation() const noexcept {
    return {incarnation_.value_or(0), next_sequence_};
  }
  /// Call when confirmation() was sent.
  void confirmed(double now_s) noexcept {
    note_listed();
    confirmed_ = next_sequence_;
    confirmed_s_ = now_s;
    confirm_anew_ = receipt_pending = false;
  }
  /// A control message of the process has arrived, so its connection is alive: what was confirmed over it
  /// kConfirmationLasts_s ago has been received.
  void control_received(double now_s) noexcept {
    last_control_s = now_s;
    if (now_s - sent_s_ < kConfirmationLasts_s) return;
    sent_s_ = now_s;
    known_received_ = std::exchange(sent_, confirmed_);
  }
  /// The same with the time of its node's last list, where a node lists it.
  void note_listed() noexcept {
    if (listed_s != nullptr) control_received(last_control());
  }
  /// Its process has another route from now on. Confirmations sent over the previous connection may be lost,
  /// so they are sent again.
  void another_route(const std::string& to) {
    route = to;
    listed_s = nullptr;
    next_ping_s = 0;
    confirmed_ = sent_ = known_received_;
  }
  /// Whether another collector of the node has relayed this batch before: the rank sent it again because it
  /// had no confirmation from that collector.
  [[nodiscard]] bool passed_on_before(const wire::Batch& batch) const noexcept {
    return batch.relay && relay_ && relay_->source_incarnation == batch.relay->source_incarnation &&
           batch.relay->source_last <= relay_->source_last && !batch.events.empty();
  }
  /// The same for a relayed text without a number, by its time and content. A rank sends no two equal texts
  /// at one time. Where the node's clock is not the rank's, its times differ slightly between collectors, and
  /// the text is recorded twice. Stores the text.
  [[nodiscard]] bool passed_on_before(const wire::Text& text);
  /// The same for a message with the rank's own number.
  [[nodiscard]] bool passed_on_before(const wire::Header& header) const noexcept {
    return header.source_next != 0 && source_ == header.source && header.source_next <= source_next_;
  }
  /// Counts such a message as received.
  void add_relayed(const wire::Header& header);
  /// Counts a message that was relayed before: another collector of the node sends from here on.
  void add_repeated(const wire::Message& message);
  /// Messages that count as lost with an earlier collector of the node, since the last call. An upper bound
  /// (not `exact`) where that collector sent no numbers with messages other than batches.
  struct LostWithNode {
    std::uint64_t messages = 0;
    bool exact = true;
  };
  [[nodiscard]] LostWithNode take_lost_with_node() noexcept { return std::exchange(lost_with_node_, {}); }
  /// Messages not confirmed yet; at least 1 where a sent confirmation may be lost.
  [[nodiscard]] std::uint64_t unconfirmed() const noexcept {
    return std::max<std::uint64_t>(next_sequence_ - confirmed_, confirm_anew_ ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return next_sequence_; }
  [[nodiscard]] double confirmed_s() const noexcept { return confirmed_s_; }
  /// A confirmation is due after this many messages: fewer than the smallest send queue holds.
  static constexpr std::uint64_t kConfirmMessages = 8;
  static constexpr double kConfirmAfter_s = 1;
  /// Upper bound on a confirmation's latency over a connection that is alive.
  static constexpr double kConfirmationLasts_s = 2;

  /// Upper bound on a plausible gap in the numbers: kMostPerSecond since the last message of the process (a
  /// message takes longer than a microsecond to make), plus kMostAtOnce, more than sockets hold. Before its
  /// first message a process may have run for any time: kMostBefore, two years of a thousand a second.
  static constexpr double kMostPerSecond = 1e6;
  static constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 16, kMostBefore = std::uint64_t{1} << 36;
  /// Replaced processes stored per rank; beyond it the one with the oldest last message is discarded. So a
  /// replaced process counts as new only after that many restarts between two of its messages.
  static constexpr std::size_t kKnownReplaced = 64;

  [[nodiscard]] std::size_t known_replaced() const noexcept { return replaced_.size(); }
  [[nodiscard]] bool has_published() const noexcept { return incarnation_.has_value(); }
  [[nodiscard]] bool is_current(std::uint64_t incarnation) const { return incarnation_ == incarnation; }

  /// Events of a full chunk: a block of a recording (store::Compaction), and they fit into a core's cache.
  static constexpr std::size_t kChunkEvents = std::size_t{1} << 14;
  /// This many events make a block by themselves: they wait kEnoughAge_s at most.
  static constexpr std::size_t kEnoughEvents = store::Compaction::kJoinedEvents;
  static constexpr double kEnoughAge_s = 0.05;

  /// Returns the empty storage of an earlier chunk, if there is any.
  using Storage = std::function<std::vector<instrumentation::Event>()>;

  /// Appends a copy of a batch's events; see due() for when a chunk is to be taken. Calls `storage` when a
  /// rank whose last chunk was large begins the next one.
  void add(const wire::Batch& batch, double now_s, const Storage& storage = {});
  /// Bytes of memory of pending events: their capacity, which may exceed their size.
  [[nodiscard]] std::size_t pending_bytes() const noexcept;
  /// When the pending events become a chunk; infinity: there are none; -infinity: a full chunk is pending.
  [[nodiscard]] double due_s(double chunk_age_s) const noexcept;
  [[nodiscard]] bool due(double now_s, double chunk_age_s) const noexcept {
    return now_s >= due_s(chunk_age_s);
  }
  [[nodiscard]] bool pending() const noexcept { return !pieces_.empty() || dropped_ != 0; }
  /// Whether the batch reports events dropped well after the pending drops: one chunk for both would mark
  /// everything in between as possibly incomplete. True at a limited rate, so that a rank that drops events
  /// all the time does not cause many tiny chunks.
  [[nodiscard]] bool begins_another_gap(const wire::Batch& batch, double now_s);
  /// Removes and returns the next chunk: about kChunkEvents events, in order of time.
  [[nodiscard]] store::Chunk take_chunk();
  /// Sheds and counts the pending events of one class. Returns their number.
  std::uint32_t shed(instrumentation::ShedClass victim);

  /// Converts a time on the rank's clock (on its node's, if relayed) to the collector's clock.
  [[nodiscard]] std::int64_t on_our_clock(std::int64_t at_ns) const {
    return at_ns +
           (node_clock != nullptr ? *node_clock : clock_of(incarnation_.value_or(0))).offset_ns(at_ns);
  }
  /// [Note: clocks of processes]
  /// A rank's next process may run on another host. `clock` is the one of the process whose hello came last;
  /// the previous process's is kept for those of its messages that arrive later. Messages that arrive before
  /// the hello of their process are on a clock of unknown offset.
  void another_process(std::uint64_t incarnation) {
    previous_process_ = {control_incarnation, std::exchange(clock, {})};
    control_incarnation = incarnation;
    pings = 0;
    end_unconfirmed = false;
  }
  /// The end that an earlier process reported is not that of the present one: messages keep it.
  void forget_end() {
    row.finished = false;
    row.exit_code = 0;
    row.exit_message.clear();
  }
  [[nodiscard]] const ClockEstimator& clock_of(std::uint64_t incarnation) const;
  /// Whether the last accepted message is of the process whose clock refinable_clock() is.
  [[nodiscard]] bool on_refinable_clock() const {
    return node_clock != nullptr || incarnation_ == control_incarnation;
  }
  /// The clock that collectives refine: its node's, if relayed.
  [[nodiscard]] ClockEstimator& refinable_clock() noexcept {
    return node_clock != nullptr ? *node_clock : clock;
  }
  [[nodiscard]] const ClockEstimator& refinable_clock() const noexcept {
    return node_clock != nullptr ? *node_clock : clock;
  }
  /// Number of pings after which the clock is known well enough for rare pings.
  static constexpr std::uint32_t kQuickPings = 10;
  [[nodiscard]] bool settled() const noexcept { return pings >= kQuickPings || node_clock != nullptr; }
  /// Longest time for which a process's events wait for the first estimate of its clock.
  static constexpr double kClockWait_s = 2;
  [[nodiscard]] bool clock_known() const {
    return node_clock != nullptr ? relay_ && node_clock->known() : clock_of(incarnation_.value_or(0)).known();
  }

  /// Whether its events need not wait for an estimate of its clock (any more).
  [[nodiscard]] bool clock_settled(double now_s) const {
    return clock_known() || now_s - first_message_s >= kClockWait_s;
  }

  store::RankRow row;
  ClockEstimator clock;
  std::string route;  ///< identity of its control connection
  /// Clock of the node's collector that relays it; null: it is connected directly.
  ClockEstimator* node_clock = nullptr;
  double last_control_s = -1e300;
  /// While its node lists it: the time of the last list (RankListing::at_s). Valid as long as node_clock.
  const double* listed_s = nullptr;
  /// Time of its last control message, or of its node's last list.
  [[nodiscard]] double last_control() const noexcept {
    return listed_s != nullptr ? std::max(last_control_s, *listed_s) : last_control_s;
  }
  double first_message_s = 0;  ///< of its present process
  double next_ping_s = 0;
  double tables_asked_s = -1e300;
  std::uint64_t control_incarnation = 0;
  std::set<std::uint32_t> names;  ///< ids whose text has arrived
  std::uint32_t pings = 0;
  AwaitedAnswer answer;   ///< to the confirmation of its end, where it is connected directly
  bool pid_seen = false;  ///< the process is visible from here, so its end is too
  bool same_clock = false;
  /// Begin of the present silence over a connection that is alive; recorded as a message.
  std::optional<double> silent_since_s;
  [[nodiscard]] bool silent() const noexcept { return silent_since_s.has_value(); }
  /// Begin of a silence that a text of its node reported, until a text ends it.
  std::optional<double> silence_recorded_s;
  bool has_tables = false;
  std::int64_t clock_error_ns = 0;  ///< of the rank's own conversion from ticks
  bool end_unconfirmed = false;     ///< its connection did not accept the confirmation of its end
  bool receipt_pending = false;     ///< a receipt is queued for its node (DownstreamLinks)
  std::uint64_t revision = 0;       ///< of `row`, for viewers
  double row_sent_s = -1e300;
  bool row_dirty = true;

 private:
  /// A process whose hello came before that of the present one, and its clock.
  struct PreviousProcess {
    std::uint64_t incarnation = 0;
    ClockEstimator clock;
  };
  std::optional<std::uint64_t> incarnation_;
  PreviousProcess previous_process_;
  std::deque<std::uint64_t>
      replaced_;  ///< earlier processes, in order of their latest messages: the latest one at the end
  std::uint64_t next_sequence_ = 0, confirmed_ = 0;
  bool confirm_anew_ = false;  ///< a duplicate has arrived since the last confirmation
  double confirmed_s_ = 0;
  std::uint64_t sent_ = 0, known_received_ = 0;  ///< confirmed at sent_s_; confirmed, and known to the sender
  double sent_s_ = 0;
  double accepted_s_ = 0;            ///< arrival of this process's last message
  std::uint64_t dropped_total_ = 0;  ///< last reported by this process
  std::uint64_t chunk_sequence_ = 0;
  /// Pending events, oldest first; each piece becomes a chunk, so that taking one moves no others.
  struct Piece {
    std::vector<instrumentation::Event> events;
    bool in_order = true;              ///< of time
    double since_s = 0;                ///< arrival of its first event
    std::uint64_t incarnation = 0;     ///< of the process that published it
    std::optional<wire::Relay> relay;  ///< of its last batch
  };
  std::deque<Piece> pieces_;
  double since_s_ = 0;                               ///< arrival of the oldest pending event or count
  bool fast_ = false;                                ///< its last chunk was a large one
  std::uint64_t dropped_ = 0, shed_ = 0, lost_ = 0;  ///< since the last chunk; `shed_` is part of `dropped_`
  std::uint64_t lost_between_ = 0;                   ///< part of `lost_`
  struct ClockMapping {
    std::int64_t offset_ns = 0, residual_ns = 0;
  };
  /// Mapping of a time of the rank to the collector's clock; without the error of its conversion from ticks.
  [[nodiscard]] ClockMapping to_collector_clock(std::int64_t at_ns, const Piece& piece) const;
  void add_relayed(const wire::Batch& batch);
  void count_dropped(const wire::Batch& batch, std::uint64_t events);
  void count_lost(std::uint64_t messages);
  /// Number of relayed texts stored to recognize repetitions.
  static constexpr std::size_t kKnownTexts = 64;
  std::deque<std::size_t> texts_;  ///< their hashes, oldest first
  LostWithNode lost_with_node_;
  /// Counts messages `first` to `next` - 1 of process `source`, received through a node's collector.
  void follow_source(std::uint64_t source, std::uint64_t first, std::uint64_t next);
  std::optional<std::uint64_t> source_;   ///< the rank's process, as its node's collector names it
  std::uint64_t source_next_ = 0;         ///< its messages before this number have arrived, or count as lost
  std::uint64_t source_incarnation_ = 0;  ///< the sender of the last of them
  bool numbered_ = false;                 ///< that sender numbers messages other than batches, too
  std::uint64_t missing_at_first_ =
      0;  ///< messages counted as lost before the sender's first, by the sender's numbers
  void take_back_first(std::uint64_t lost);
  void join_pieces();
  std::optional<wire::Relay> relay_;     ///< of the last batch that a node's collector relayed
  std::uint64_t relay_incarnation_ = 0;  ///< of its sender
  std::int64_t missing_begin_ns_ = INT64_MAX, missing_end_ns_ = INT64_MIN;  ///< range of dropped events
  double parted_s_ = -1e300;  ///< when begins_another_gap() was true last
};

}  // namespace shardscope::collector
