// Access control of a collector, and a count of refused connections. Answers libzmq's authentication requests
// (ZAP, RFC 27). With keys: each public key in the collector's list has one role, and each socket accepts
// certain roles. Without keys: every peer that speaks today's protocol (make_socket). Also counts peers whose
// handshake fails earlier: no key, another protocol, garbage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "app/collector/handshakes.h"
#include "app/collector/socket_poll.h"
#include "instrumentation/keys.h"

namespace shardscope::collector {

/// Used by the collector's thread.
class AccessGuard {
 public:
  /// Binds the ZAP handler; must be called before the sockets bind. Without a key every peer is accepted.
  AccessGuard(zmq::context_t& context, const std::optional<instrumentation::KeyFile>& key);
  /// Without keys, over ipc: accepts processes of this process's user and of root; the kernel reports which.
  void admit_own_user() noexcept { own_user_only_ = true; }
  /// Monitors the socket's handshakes. `name`: of the socket, for the guard's texts.
  void watch(zmq::context_t& context, zmq::socket_t& socket, const std::string& name);

  /// Adds the sockets that become readable when serve() has work; call once, after watch().
  void add_to(SocketPoll& poll);
  /// Whether serve() has work, as of the poll's last wait.
  [[nodiscard]] bool readable(const SocketPoll& poll) const noexcept;

  struct Refusal {
    std::string peer;  ///< address, where it is known
    std::string why;
  };
  /// Answers pending requests; returns the peers refused since the last call. `now_s`: of a monotonic clock.
  [[nodiscard]] std::vector<Refusal> serve(double now_s);
  /// Returns the peers refused because their handshake timed out; reads no socket.
  [[nodiscard]] std::vector<Refusal> overdue(double now_s);

  /// True if the sender of `message` has `role`. Without keys every peer has every role.
  [[nodiscard]] bool may(zmq::message_t& message, instrumentation::KeyRole role) const;
  /// The sender, as text: "key 'anna' from 127.0.0.1".
  [[nodiscard]] std::string who(zmq::message_t& message) const;

 private:
  struct Watched {
    std::string name;
    zmq::socket_t events;
    Handshakes handshakes;
  };
  void answer(std::vector<Refusal>& refusals);
  [[nodiscard]] std::string right_of(const std::vector<zmq::message_t>& request,
                                     std::vector<Refusal>& refusals) const;
  static void follow(Watched& watched, std::uint16_t event, std::uint32_t value, double now_s,
                     std::vector<Refusal>& refusals);

  bool keys_in_use_;
  bool own_user_only_ = false;
  struct Holder {
    instrumentation::KeyRole role;
    std::string name;
  };
  std::map<std::string, Holder> allowed_;  ///< by public key, 32 bytes
  zmq::socket_t handler_;
  std::vector<Watched> watched_;
  std::vector<std::size_t> poll_items_;  ///< indices in the poll
};

}  // namespace shardscope::collector
