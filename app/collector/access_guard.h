// Who may connect to a collector with keys, and how many were refused. Answers libzmq's questions (ZAP,
// RFC 27) from the collector's list of public keys: each key has one right, each socket asks for one. Also
// counts peers whose handshake fails earlier: without a key, with another protocol, with noise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "app/collector/socket_poll.h"
#include "instrumentation/keys.h"

namespace shardscope::collector {

/// Used by the collector's thread.
class AccessGuard {
 public:
  /// Binds the handler, so before the sockets bind. Without a key everybody is let in and only handshakes
  /// that fail are counted.
  AccessGuard(zmq::context_t& context, const std::optional<instrumentation::KeyFile>& key);
  /// Follows the socket's handshakes. `name`: for what the guard says.
  void watch(zmq::context_t& context, zmq::socket_t& socket, const std::string& name);

  /// Adds what becomes readable when serve() has work; once, after watch().
  void add_to(SocketPoll& poll);
  /// As of its last wait: serve() has work.
  [[nodiscard]] bool readable(const SocketPoll& poll) const noexcept;

  struct Refusal {
    std::string peer;  ///< address, where it is known
    std::string why;
  };
  /// Answers what is waiting; returns who was refused since the last call.
  [[nodiscard]] std::vector<Refusal> serve();

  /// True if the sender of `message` may do `role`. Without keys everybody may everything.
  [[nodiscard]] bool may(zmq::message_t& message, instrumentation::KeyRole role) const;

 private:
  void answer(std::vector<Refusal>& refusals);

  struct Watched {
    std::string name;
    zmq::socket_t events;
  };
  bool keys_in_use_;
  std::map<std::string, instrumentation::KeyRole> allowed_;  ///< by public key, 32 bytes
  std::optional<zmq::socket_t> handler_;
  std::vector<Watched> watched_;
  std::vector<std::size_t> doors_;  ///< in the poll
};

}  // namespace shardscope::collector
