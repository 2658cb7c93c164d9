// Waits for several ZeroMQ sockets with one system call. zmq::poll() queries each of them before and after it
// waits, with two calls each: a collector that is woken for one batch of events would spend more time on its
// other sockets than on the batch.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>
#include <zmq.hpp>

namespace shardscope::collector {

/// Used by one thread, which also uses the sockets. A socket's descriptor becomes readable when something
/// happens to a socket at rest. One not at rest may have a message that its descriptor no longer signals, so
/// it is queried: after it was readable (it may have more messages) and after used().
class SocketPoll {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// Returns the index of `socket` for the calls below. The socket must outlive this.
  std::size_t add(zmq::socket_t& socket);
  /// Call after sending over it, which may have consumed the notification of a message.
  void used(std::size_t socket) noexcept { sockets_[socket].at_rest = false; }
  /// Waits until a socket other than `without` has a message, one of `more` has a requested event (their
  /// `revents` are set), `wake` is readable or `timeout` is over. Returns whether `wake` is readable.
  /// Interrupted by a signal it returns early. Throws zmq::error_t.
  bool wait(std::chrono::milliseconds timeout, int wake, std::span<zmq::pollitem_t> more,
            std::size_t without = kNone);
  /// Whether the socket had a message at the last wait().
  [[nodiscard]] bool readable(std::size_t socket) const noexcept { return sockets_[socket].readable; }

 private:
  struct Socket {
    zmq::socket_t* socket = nullptr;
    int descriptor = -1;
    bool at_rest = false, readable = false;
  };
  static void ask(Socket& socket);

  std::vector<Socket> sockets_;
  std::vector<pollfd> descriptors_;  ///< of one wait(); a member to reuse its memory
};

}  // namespace shardscope::collector
