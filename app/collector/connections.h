// Connections of the collector's peers, as the kernel reports them. libzmq bounds a peer's queue by whole
// messages: the frames of a message that never ends count for no bound, before and after a handshake, and a
// socket has no call that disconnects one peer. The kernel counts the bytes that a peer has sent and libzmq
// has not read, and when a connection is shut down in the kernel, libzmq drops it with everything that it
// stored for it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

/// The kernel reuses descriptors; a `cookie` identifies one socket for ever.
struct Connection {
  int descriptor = -1;
  std::uint64_t cookie = 0;
  friend bool operator==(const Connection&, const Connection&) = default;
};
/// The connection over which `message` was received; an empty one where libzmq does not report it.
[[nodiscard]] Connection connection_of(zmq::message_t& message) noexcept;
/// Shuts the connection down. False: it is closed already.
bool cut(const Connection& connection) noexcept;

// [Note: bytes over ipc]
// For a TCP connection the kernel reports the number of bytes read. Over a socket file it counts nothing, so
// a peer's bytes are estimated from the growth of the process's memory between two checks: it is divided
// equally among the peers without a received message in between that had bytes waiting at one of the checks
// or have never sent a whole message; if there are none, among all peers without a received message. A
// correct peer is among these at times; its next received message resets it, and limits span many checks.

/// Bounds libzmq's memory for messages that are incomplete or not received yet. Has its own thread, since
/// the receiver may be slower than the sender.
class ConnectionWatch {
 public:
  struct Limits {
    /// Bytes of one peer: the largest frame it may send, and some margin. [publish, view, control]
    std::array<std::size_t, 3> each{instrumentation::wire::kMaxFrameBytes + (1U << 20), 4U << 20, 4U << 20};
    std::size_t least_estimated = 64U << 20;  ///< replaces a smaller `each` over ipc
    /// Bytes of all peers together, plus `rank` for each rank.
    std::size_t in_all = instrumentation::wire::kMaxFrameBytes + (64U << 20);
    std::size_t rank = 1U << 20;
    std::size_t views = 1024;  ///< connections to the view port; beyond it those without a message are cut
  };
  /// Bytes that may arrive between two checks, on top of the limits, at the rate of libzmq's one thread.
  static constexpr std::size_t kBetweenLooks = 128U << 20;

  explicit ConnectionWatch(const instrumentation::Endpoints& endpoints)
      : ConnectionWatch(endpoints, Limits{}) {}
  ConnectionWatch(const instrumentation::Endpoints& endpoints, Limits limits);
  ~ConnectionWatch();
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

  /// Counts a frame received from a socket. Any thread.
  void delivered(zmq::message_t& frame) noexcept;
  /// Call when a peer may have connected: checks are frequent from then on until none is. Any thread.
  void attend();
  void set_ranks(std::size_t ranks) noexcept { ranks_.store(ranks, std::memory_order_relaxed); }
  /// Connections cut off so far. Any thread.
  [[nodiscard]] std::uint64_t cut_off() const noexcept { return cut_off_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kDescriptors = 1U << 16;
  struct Peer {
    int descriptor = -1;
    int port = -1;                              ///< index into Limits::each; -1: not one of ours
    bool estimated = false, waits = false;      ///< [Note: bytes over ipc]; had bytes waiting
    std::uint64_t received = 0, delivered = 0;  ///< bytes at the last check at which nothing was held
    std::size_t held = 0;
    bool spoke = false;  ///< a message of it was received
    bool seen = false;   ///< in this check
  };
  void run();
  /// Checks all connections. `growth`: of the process's memory since the last check, bytes.
  void look(std::size_t growth);
  void look_at(int descriptor);
  void estimate(std::size_t growth);
  [[nodiscard]] int port_of(int descriptor) const noexcept;
  [[nodiscard]] bool any_connected() const;
  void cut_connections_over_limits();
  void cut_off(std::map<std::uint64_t, Peer>::iterator peer);

  std::array<int, 3> ports_{-1, -1, -1};
  std::array<std::string, 3> files_;  ///< of ipc://
  Limits limits_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> taken_;  ///< bytes delivered, by descriptor
  std::vector<std::uint64_t> taken_before_;              ///< `taken_` at the last check
  std::map<std::uint64_t, Peer> peers_;                  ///< by cookie
  std::vector<Peer*> waiting_;  ///< no message since the last check; bytes wait, or it never sent a message
  std::vector<Peer*> quiet_;    ///< no message since the last check, and no bytes waiting
  std::atomic<std::size_t> ranks_{0};
  std::atomic<std::uint64_t> cut_off_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false, attend_ = false;
  std::thread thread_;
};

}  // namespace shardscope::collector
