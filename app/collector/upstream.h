// The connection of a node's collector to the collector above: relays its ranks' messages upstream, over one
// connection, and that collector's commands downstream. Messages have a separate numbering on this hop,
// beside the rank's, so that a loss on either hop is detected.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "app/collector/frame_pack.h"
#include "app/collector/rank_session.h"
#include "app/collector/relay_hellos.h"
#include "app/collector/relay_stream.h"
#include "app/collector/shared_lists.h"
#include "instrumentation/host_clock.h"
#include "instrumentation/link_state.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

struct UpstreamOptions {
  std::string endpoint;
  std::string key_file;   ///< publishing key of the collector above; empty: SHARDSCOPE_KEY, or none
  std::size_t bytes = 0;  ///< bound on queued messages of all ranks; beyond it events are shed and counted
  std::uint64_t id = 0;   ///< of this collector process
  std::string host, clock_id;  ///< of this node
  instrumentation::HostClock clock;
  /// Called with a command for a rank; its `id` is the upper collector's.
  std::function<void(std::uint32_t rank, const wire::RankCommand&)> command;
  /// Called with a request of the collector above to keep the interval around a moment.
  std::function<void(const wire::RankCommand&)> keep;
  /// Adds the connected ranks, and which of them are silent, to a hello: one message with all ranks for the
  /// collector above.
  std::function<void(wire::RelayHello&)> list_ranks;
};

/// Used by the collector's thread.
class Upstream {
 public:
  static constexpr std::size_t kLeastQueue = 64U << 10;  ///< bytes of a rank, over a thousand events
  /// Most replaced processes with messages that are queued or unconfirmed. Beyond it the oldest is discarded:
  /// its loss is counted for its rank and recorded as a message.
  static constexpr std::size_t kMostReplaced = 64;

  Upstream(zmq::context_t& context, UpstreamOptions options);

  /// Queues an accepted message of a rank; `missing`: the number of messages lost just before it.
  void published(const RankSession& rank, const wire::Message& message, std::uint64_t missing);
  /// Call before another process replaces the one that sent the last hello: copies that one's clock for its
  /// queued messages. See [Note: clocks of processes].
  void keep_clock(std::uint32_t id, const RankSession& rank);
  /// Discards the ranks' hellos: they were of another run than the one relayed.
  void clear_hellos() { hellos_.forget_ranks(); }
  /// The rank was silent: its next position is relayed.
  void rank_was_silent(std::uint32_t rank) { hellos_.was_silent(rank); }
  /// Relays a Hello, Prepared or Position. Hellos and positions that a rank only repeats are dropped.
  void control(const wire::Header& from, wire::Body body, double now_s);
  /// The collector above needs events at once (Watch::active), or has not reported otherwise yet.
  [[nodiscard]] bool watched() const noexcept { return watched_; }
  /// How long events may wait here, as the collector above requests; 0: at this collector's own pace.
  [[nodiscard]] double pack_s() const noexcept { return pack_s_; }
  /// Sends waiting messages with the next pump().
  void pack_soon() noexcept { flush_now_ = true; }
  /// Receives commands, sends a hello that is due, and sends queued messages as far as the connection accepts
  /// them. `now_s`: on the clock of RankSession::first_message_s. A process's messages wait for its clock
  /// RankSession::kClockWait_s at most. Messages are packed for `every_s` at most, and sent sooner where many
  /// bytes wait, or a message other than a batch.
  void pump(double now_s, double every_s = 0);
  /// Longest time that the caller may wait for messages before the next pump().
  [[nodiscard]] double rest_s(double now_s) const noexcept;
  void add_to(std::vector<zmq::pollitem_t>& items);
  /// Whether every message has been sent.
  [[nodiscard]] bool sent() const;
  /// Whether the collector above has confirmed every message, and the end of each rank that has ended.
  [[nodiscard]] bool drained() const;
  /// Whether there is a connection to the collector above.
  [[nodiscard]] bool connected() const { return link_ && link_->up(); }
  [[nodiscard]] std::uint64_t shed() const noexcept;
  /// Whether a queue exceeds its part of the bound with events that are never shed (steps, memory
  /// watermarks): the ranks have to wait until some of it is sent.
  [[nodiscard]] bool full() const noexcept { return full_ != 0; }
  /// Bytes of messages queued or unconfirmed. At most UpstreamOptions::bytes plus a batch of each rank.
  [[nodiscard]] std::size_t queued_bytes() const noexcept;

 private:
  using Stream = RelayStream;
  Stream& stream(const RankSession& rank, const wire::Header& from);
  void discard_oldest();
  void report_discarded(Stream& stream);
  void share_bytes();  ///< sets each queue's part of the bound
  void note_full(Stream& stream) noexcept;
  [[nodiscard]] std::size_t bytes_of_each() const noexcept;  ///< that part
  bool send(Stream& stream, double now_s);                   ///< false: the connection is full
  bool send_pack();                                          ///< the same
  void rewind();                                             ///< sends every unconfirmed message again
  void confirmed(std::uint32_t rank, std::uint64_t source, std::uint64_t next);
  void receive(double now_s);
  bool send_control(const wire::Header& from, wire::Body body);  ///< false: not accepted
  void resend(Stream& stream);
  void send_hello(double now_s);
  void on_ping(const wire::Message& message, const wire::Ping& ping, double now_s);
  void connect();
  void look_at_connections();

  UpstreamOptions options_;
  zmq::context_t& context_;
  instrumentation::Credentials credentials_;
  zmq::socket_t push_, control_;
  std::optional<instrumentation::LinkState> link_, control_link_;  ///< of push_ and of control_
  bool other_key_ = false;                                         ///< the key has changed since connect()
  bool blocked_ = false;                                           ///< push_ accepts no more
  FramePack pack_;                                                 ///< being filled
  std::optional<zmq::message_t> unsent_pack_;                      ///< not accepted by push_ yet
  double next_pack_s_ = 0;
  bool flush_now_ = false;         ///< a waiting message must not wait until next_pack_s_
  std::size_t waiting_bytes_ = 0;  ///< events published since the last pack
  std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
  std::deque<std::unique_ptr<Stream>> replaced_;  ///< of replaced processes, until all is confirmed
  SharedLists lists_;
  RelayHellos hellos_;
  std::uint64_t above_ = 0;  ///< process of the collector above; 0: it has not pinged
  bool watched_ = true;
  double pack_s_ = 0;
  bool window_full_ = false;       ///< a stream with more to send waits for receipts
  std::uint32_t turn_ = 0;         ///< rank whose turn is next
  std::uint64_t shed_before_ = 0;  ///< by queues deleted since
  std::size_t full_ = 0;           ///< number of full queues
};

}  // namespace shardscope::collector
