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
#include "app/collector/relay_greetings.h"
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
  /// A command for a rank; `id` is the upper collector's.
  std::function<void(std::uint32_t rank, const wire::RankCommand&)> command;
  /// The collector above asks this one to keep the interval around a moment.
  std::function<void(const wire::RankCommand&)> keep;
  /// Adds which ranks are connected, and which of them silent. The collector above is sent that in one
  /// message.
  std::function<void(wire::RelayHello&)> list_ranks;
};

/// Used by the collector's thread.
class Upstream {
 public:
  static constexpr std::size_t kLeastQueue = 64U << 10;  ///< of a rank, some thousand events
  /// Processes that others have replaced and of which something waits. Beyond this number the oldest is
  /// discarded: its loss is counted for its rank and recorded as a message.
  static constexpr std::size_t kMostReplaced = 64;

  Upstream(zmq::context_t& context, UpstreamOptions options);

  /// An accepted message of a rank: `missing` messages did not arrive before it.
  void published(const RankSession& rank, const wire::Message& message, std::uint64_t missing);
  /// The process that sent the last hello is about to be followed by another: what it has published stays on
  /// its clock. See [Note: clocks of processes].
  void keep_clock(std::uint32_t id, const RankSession& rank);
  /// Those of another run than turned out to be passed on.
  void clear_hellos() { greetings_.forget_ranks(); }
  /// The next position of the rank is passed on.
  void rank_was_silent(std::uint32_t rank) { greetings_.was_silent(rank); }
  /// Hello, Prepared, Position. What a rank only repeats is not passed on (RelayGreetings).
  void control(const wire::Header& from, wire::Body body, double now_s);
  /// The collector above needs events at once (Watch::active), or has not reported otherwise yet.
  [[nodiscard]] bool watched() const noexcept { return watched_; }
  /// How long events may wait here, as the collector above asks; 0: by this one's own pace.
  [[nodiscard]] double pack_s() const noexcept { return pack_s_; }
  /// Sends waiting messages with the next pump().
  void pack_soon() noexcept { flush_now_ = true; }
  /// Sends hello, receives commands, sends what the connection takes. `now_s`: on the clock of
  /// RankSession::first_message_s. What a process published waits RankSession::kClockWait_s for its clock at
  /// most. What its ranks publish is packed, for `every_s` at most, and sooner where much waits or anything
  /// but events.
  void pump(double now_s, double every_s = 0);
  /// How long the caller may wait for messages before the next pump() at most.
  [[nodiscard]] double rest_s(double now_s) const noexcept;
  void add_to(std::vector<zmq::pollitem_t>& items);
  /// Everything has been sent.
  [[nodiscard]] bool sent() const;
  /// True when the collector above has everything, and knows of each rank that it ended.
  [[nodiscard]] bool drained() const;
  /// There is a collector above to send to.
  [[nodiscard]] bool connected() const { return link_ && link_->up(); }
  [[nodiscard]] std::uint64_t shed() const noexcept;
  /// A queue holds nothing but what is never shed (steps, watermarks of memory) and is over its part of the
  /// bound: until the collector above has taken some of it, the ranks have to wait.
  [[nodiscard]] bool full() const noexcept { return full_ != 0; }
  /// Bytes of messages queued or unconfirmed. At most UpstreamOptions::bytes plus a batch of each rank.
  [[nodiscard]] std::size_t queued_bytes() const noexcept;

 private:
  using Stream = RelayStream;
  Stream& stream(const RankSession& rank, const wire::Header& from);
  void discard_oldest();
  void report_discarded(Stream& stream);
  void share_bytes();  ///< each queue gets its part of the bound
  void note_full(Stream& stream) noexcept;
  [[nodiscard]] std::size_t bytes_of_each() const noexcept;  ///< its part
  bool send(Stream& stream, double now_s);                   ///< false: the connection is full
  bool send_pack();                                          ///< the same
  void rewind();                                             ///< sends every unconfirmed message again
  void confirmed(std::uint32_t rank, std::uint64_t source, std::uint64_t next);
  void receive(double now_s);
  bool send_control(const wire::Header& from, wire::Body body);  ///< false: the connection did not take it
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
  bool other_key_ = false;                                         ///< than that of the sockets
  bool blocked_ = false;                                           ///< push_ took nothing more
  FramePack pack_;                                                 ///< goes on being filled
  std::optional<zmq::message_t> unsent_pack_;                      ///< that push_ did not take
  double next_pack_s_ = 0;
  bool flush_now_ = false;         ///< a waiting message must not wait until next_pack_s_
  std::size_t waiting_bytes_ = 0;  ///< events published since the last pack
  std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
  std::deque<std::unique_ptr<Stream>> replaced_;  ///< of processes that others have replaced, until sent
  SharedLists lists_;
  RelayGreetings greetings_;
  std::uint64_t above_ = 0;  ///< process of the collector above; 0: it has not pinged
  bool watched_ = true;
  double pack_s_ = 0;
  bool window_full_ = false;       ///< of a stream that has more to send
  std::uint32_t turn_ = 0;         ///< rank whose turn is next
  std::uint64_t shed_before_ = 0;  ///< by queues that are gone
  std::size_t full_ = 0;           ///< queues that are
};

}  // namespace shardscope::collector
