// One rank's connection to its collector: the queue of what is unsent, what is not confirmed, the publishing
// socket, the control channel. Publisher feeds it from the process's rings; the load generator plays many
// ranks with many links.
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
  ~LinkContext();  ///< after its links; waits a moment for what they have sent
  LinkContext(const LinkContext&) = delete;
  LinkContext& operator=(const LinkContext&) = delete;

 private:
  friend class RankLink;
  struct State;
  std::unique_ptr<State> state_;
};

/// Events of one message: 160 KiB, large against its header, small where a thousand ranks queue a few each.
inline constexpr std::size_t kBatchEvents = 1U << 12;

struct RankLinkOptions {
  std::string endpoint;
  std::string key_file;  ///< publishing key (Credentials)
  std::size_t queue_bytes = 64U << 20;
  GateKeeper* gate = nullptr;              ///< outlives the link
  std::function<void(Detail)> set_detail;  ///< called on the link's control thread
  std::function<int()> detail;
  std::function<void(std::uint16_t)> look_pause;  ///< likewise: see ControlClientOptions
  std::function<void()> gate_moved;               ///< likewise: the rank began to hold at a gate, or went on
  std::function<void(Request)> ask;               ///< likewise
  std::string clock_id;                           ///< empty: this machine's
  HostClock clock;                                ///< of simulated hosts; this machine's otherwise
  LinkContext* shared = nullptr;                  ///< outlives the link; null: a context of its own
};

class RankLink {
 public:
  /// Connects in the background; never waits for the collector. Throws std::runtime_error for an endpoint
  /// that cannot be one and for a key that is not whole.
  RankLink(RankLinkOptions options, RunTables tables);
  ~RankLink();  ///< discards what is unsent; see drain()
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  // The owner's thread.
  /// Events in nanoseconds of the rank's monotonic clock, in order of time. `dropped`: lost among these or
  /// before, between `begin_ns` and `end_ns`; where none are, that is the time they cover.
  void push(std::vector<Event> events, std::uint64_t dropped, std::int64_t begin_ns, std::int64_t end_ns,
            std::int64_t clock_error_ns);
  /// For the next push(): no events, but the memory of some that were sent.
  [[nodiscard]] std::vector<Event> buffer() noexcept;
  /// Sends as much as the socket takes without waiting, and again what a connection that was cut took with it
  /// ([Note: what is sent twice] in app/collector/rank_session.h).
  void pump();
  /// pump() until all is handed over and, after a Finish, the collector has confirmed it; at most
  /// `seconds`, and less when no collector answers. False: that was not enough.
  [[nodiscard]] bool drain(double seconds);
  /// Events that no collector has confirmed.
  [[nodiscard]] std::uint64_t unsent_events() const noexcept;
  [[nodiscard]] std::uint64_t shed() const noexcept;  ///< events shed from the queue
  [[nodiscard]] std::size_t queued_bytes() const noexcept;

  // Any thread.
  void post(wire::Body body);  ///< Text, Name or Finish; bounded, the excess is counted and said
  /// Instead of those that were there; sent with the next pump(), and to collectors that come later.
  void post_tables(RunTables tables);
  [[nodiscard]] bool finish_received() const noexcept;
  /// Why the collector takes nothing from this process; empty: it has not said so.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] std::uint32_t rank() const noexcept;
  [[nodiscard]] bool collector_alive() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::instrumentation
