// Connection state of a connecting socket. libzmq reconnects by itself when a connection is cut, and drops
// the messages that it had queued for the old one; the sender has to know.
#pragma once

#include <zmq.hpp>

namespace shardscope::instrumentation {

/// Used by the thread that uses the socket, which has one peer.
class LinkState {
 public:
  /// Call before the socket connects.
  LinkState(zmq::context_t& context, zmq::socket_t& socket);
  /// Destroy before the socket is closed or replaced: otherwise libzmq's I/O thread would wait forever to
  /// report the disconnect to a reader that no longer exists, and serve no socket of its context any more.
  ~LinkState();
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;
  /// Processes the socket's events. True: the connection was cut since the last call; messages that were sent
  /// but not confirmed may be lost.
  bool update();
  /// Connected, after every cut that update() has reported. Do not send while false: the message could go
  /// into the remains of the old connection.
  [[nodiscard]] bool up() const noexcept { return up_; }

 private:
  zmq::socket_t* socket_;
  zmq::socket_t events_;
  bool up_ = false;
};

}  // namespace shardscope::instrumentation
