// Whether a connecting socket has a connection. libzmq makes a new one by itself when one is cut, and drops
// what it had taken for the old one; the sender has to know.
#pragma once

#include <zmq.hpp>

namespace shardscope::instrumentation {

/// Used by the thread that uses the socket, which has one peer.
class LinkState {
 public:
  /// Before the socket connects.
  LinkState(zmq::context_t& context, zmq::socket_t& socket);
  /// Before the socket is closed or replaced: libzmq's I/O thread would wait for ever to say that the
  /// connection is gone, to a reader that is gone, and would serve no socket of its context again.
  ~LinkState();
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;
  /// Takes in what has happened. True: the connection was cut since the last call; what was sent and not
  /// confirmed may be lost.
  bool update();
  /// There is a connection, made after every cut that update() has reported. Nothing is to be sent without:
  /// it could go into what is left of the old one.
  [[nodiscard]] bool up() const noexcept { return up_; }

 private:
  zmq::socket_t* socket_;
  zmq::socket_t events_;
  bool up_ = false;
};

}  // namespace shardscope::instrumentation
