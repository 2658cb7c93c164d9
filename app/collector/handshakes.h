// Counts refused connections to one socket. libzmq reports most failed handshakes, but not those of a peer
// that it disconnects for speaking another protocol: its monitor reports only "accepted" and
// "disconnected".
#pragma once

#include <cstddef>
#include <map>

namespace shardscope::collector {

/// Pure: receives libzmq's monitor events of a socket in order. A success event names no connection, so for
/// concurrent handshakes only the number of successes is known; a refused connection mistaken for a
/// successful one is counted once its handshake must have timed out.
class Handshakes {
 public:
  /// Longer than libzmq waits for a handshake (make_socket, handshake_ivl).
  static constexpr double kOver_s = 12;

  void accepted(int connection, double now_s) { open_[connection] = now_s; }
  /// A handshake succeeded, or its peer was sent the reason of its refusal: its outcome is known.
  void resolved() {
    ++resolved_;
    settle();
  }
  /// libzmq reported a failed handshake; disconnected() of the same connection follows.
  void failed() { failed_ = true; }
  /// True if its handshake did not succeed, as far as is known, and that was not reported.
  [[nodiscard]] bool disconnected(int connection) {
    const bool reported = failed_;
    failed_ = false;
    if (open_.erase(connection) == 0) return false;
    if (reported) {
      settle();
      return false;
    }
    if (resolved_ == 0) return true;
    --resolved_;
    settle();
    return false;
  }
  /// Number of refused connections that disconnected() did not report.
  [[nodiscard]] std::size_t over(double now_s) {
    if (open_.empty()) return 0;
    for (const auto& [connection, since] : open_) {
      if (now_s - since < kOver_s) return 0;
    }
    const std::size_t refused = open_.size() - resolved_;
    open_.clear();
    resolved_ = 0;
    return refused;
  }

 private:
  void settle() {
    if (resolved_ < open_.size()) return;
    open_.clear();
    resolved_ = 0;
  }
  std::map<int, double> open_;  ///< accepted, with a handshake not known to be over -> time of accept
  std::size_t resolved_ = 0;    ///< how many of `open_` are resolved
  bool failed_ = false;
};

}  // namespace shardscope::collector
