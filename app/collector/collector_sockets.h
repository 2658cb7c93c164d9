// The collector's sockets: one receives the ranks' events, one their control messages, one viewers' requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "app/collector/access_guard.h"
#include "app/collector/connections.h"
#include "app/collector/socket_poll.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {

class Upstream;

struct CollectorSockets {
  explicit CollectorSockets(const std::optional<instrumentation::KeyFile>& key);
  /// Binds all three. Port 0: any three free ports in a row. Throws std::runtime_error: endpoint, reason,
  /// what to do.
  void listen(const std::string& endpoint);
  /// Receives the next message published by a rank, without waiting. False: there is none.
  [[nodiscard]] bool receive_published(zmq::message_t& message);
  /// Whether messages of ranks are received, or wait in the socket.
  enum class Ranks : std::uint8_t { receive, wait };
  /// The sockets that have a message. Those not read now are reported again.
  struct Ready {
    bool control = false, view = false, published = false;
    bool handshakes = false;  ///< a connection to authenticate, or one that was refused
  };
  /// Waits until a message is there, `wake` is signalled or `timeout_s` is over.
  /// With `upstream` also until its control socket is readable or, where sending was blocked, writable again.
  Ready wait(double timeout_s, Ranks ranks, Upstream* upstream);
  /// Call after sending over `control`, or over `view`.
  void control_used() noexcept { poll_.used(control_item_); }
  void view_used() noexcept { poll_.used(view_item_); }

  instrumentation::Endpoints endpoints;  ///< after listen(), with the real ports
  zmq::context_t context{1};
  AccessGuard guard;  ///< before the sockets: its handler must be bound first
  zmq::socket_t pull, control, view;
  instrumentation::WakeFd wake;
  std::optional<ConnectionWatch> watch;  ///< from listen() on

 private:
  void bind(const std::string& endpoint);

  SocketPoll poll_;
  std::size_t pull_item_, control_item_, view_item_;
  std::vector<zmq::pollitem_t> upstream_items_;  ///< of one wait(); a member to reuse its memory
};

/// A message of a router socket: its sender and its one frame.
struct Routed {
  zmq::message_t route, body;
  std::int64_t received_ns = 0;
  bool whole = false;  ///< it had a body; further frames are not of our protocol and are ignored
};

/// Receives the next message of `socket` without waiting, and notes it in `watch`. False: there is none.
[[nodiscard]] bool receive(zmq::socket_t& socket, Routed& message, ConnectionWatch& watch);

}  // namespace shardscope::collector
