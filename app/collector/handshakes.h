// Which connections to one socket were refused before they ended. libzmq reports most handshakes that
// fail, but not of a peer that it hangs up on because it speaks another protocol: that one is accepted and
// gone.
#pragma once

#include <cstddef>
#include <map>

namespace shardscope::collector {

/// Pure: is given libzmq's events of a socket in order. An event of success names no connection, so of those
/// whose handshakes run at the same time it is only known how many succeeded; a refused one that was taken
/// for one of these is counted once its handshake would have had to be over.
class Handshakes {
 public:
  /// Longer than libzmq waits for a handshake (make_socket, handshake_ivl).
  static constexpr double kOver_s = 12;

  void accepted(int connection, double now_s) { open_[connection] = now_s; }
  /// One was accepted, or was sent the reason why it is not: its outcome is known.
  void resolved() {
    ++resolved_;
    settle();
  }
  /// libzmq reported a failed handshake; disconnected() of the same connection follows.
  void failed() { failed_ = true; }
  /// True if the connection was never accepted, and its failure was not reported.
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
  /// How many were refused that disconnected() did not report.
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
  std::map<int, double> open_;  ///< accepted and not known to be resolved: since when
  std::size_t resolved_ = 0;    ///< of these
  bool failed_ = false;
};

}  // namespace shardscope::collector
