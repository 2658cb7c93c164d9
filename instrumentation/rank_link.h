// One rank's connection to its collector: the queue of unsent messages, the window of unconfirmed ones, the
// publishing socket, the control channel. Publisher fills it from the process's rings; the load generator
// simulates many ranks with many links.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"
#include "instrumentation/host_clock.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation {

/// ZeroMQ's threads and sockets for many links of one process.
class LinkContext {
 public:
  explicit LinkContext(std::size_t links);
  ~LinkContext();  ///< after its links; waits briefly for their sent messages
  LinkContext(const LinkContext&) = delete;
  LinkContext& operator=(const LinkContext&) = delete;

 private:
  friend class RankLink;
  struct State;
  std::unique_ptr<State> state_;
};

/// Events of one message: 160 KiB, large compared to its header, small if a thousand ranks queue a few each.
inline constexpr std::size_t kBatchEvents = 1U << 12;

struct RankLinkOptions {
  std::string endpoint;
  std::string key_file;  ///< publishing key (Credentials)
  std::size_t queue_bytes = 64U << 20;
  GateKeeper* gate = nullptr;              ///< must outlive the link
  std::function<void(Detail)> set_detail;  ///< called on the link's control thread
  std::function<int()> detail;
  std::function<void(std::uint16_t)> look_pause;  ///< likewise: see ControlClientOptions
  std::function<void()> gate_moved;  ///< likewise: the rank began to hold at a gate, or continued
  std::function<void(Request)> ask;  ///< likewise
  std::string clock_id;              ///< empty: this machine's clock_identity()
  HostClock clock;                   ///< for simulated hosts; default: this machine's
  LinkContext* shared = nullptr;     ///< must outlive the link; null: a separate context
};

class RankLink {
 public:
  /// Connects in the background; never waits for the collector. Throws std::runtime_error for an invalid
  /// endpoint and for an incomplete key.
  RankLink(RankLinkOptions options, RunTables tables);
  ~RankLink();  ///< discards unsent messages; see drain()
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  // The owner's thread.
  /// Events by timestamp, in ns of the rank's monotonic clock. `dropped`: events lost among or before these,
  /// between `begin_ns` and `end_ns`; without drops, that is the interval that the events cover.
  void push(std::vector<Event> events, std::uint64_t dropped, std::int64_t begin_ns, std::int64_t end_ns,
            std::int64_t clock_error_ns);
  /// An empty vector for the next push(), with the memory of sent events.
  [[nodiscard]] std::vector<Event> buffer() noexcept;
  /// Sends as much as the socket accepts without waiting, and resends messages lost with a cut connection
  /// ([Note: what is sent twice] in app/collector/rank_session.h).
  void pump();
  /// Calls pump() until everything is sent and, after a Finish, the collector has confirmed it; for at most
  /// `seconds`, and less if no collector replies. False: not everything was sent in time.
  [[nodiscard]] bool drain(double seconds);
  /// Events that no collector has confirmed.
  [[nodiscard]] std::uint64_t unsent_events() const noexcept;
  [[nodiscard]] std::uint64_t shed() const noexcept;  ///< events shed from the queue
  [[nodiscard]] std::size_t queued_bytes() const noexcept;

  // Any thread.
  void post(wire::Body body);  ///< Text, Name or Finish; bounded, excess messages are counted and reported
  /// Replaces the tables; sent by the next pump(), and to collectors that connect later.
  void post_tables(RunTables tables);
  [[nodiscard]] bool finish_received() const noexcept;
  /// Why the collector accepts nothing from this process; empty if it has not refused.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] std::uint32_t rank() const noexcept;
  [[nodiscard]] bool collector_alive() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::instrumentation
