// When a node's collector sends its hello to the collector above, and whether that one has accepted it. Until
// then it may ignore the hello as one of another run, and with it all messages of the node's ranks. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace shardscope::collector {

class NodeHello {
 public:
  /// Interval between hellos: kEvery_s. A run may be over within half a second: until the collector above has
  /// pinged, the intervals are 2, 4, 8, ... times kFirst_s.
  static constexpr double kFirst_s = 0.02, kEvery_s = 0.5;
  /// The collector above pings every second. After a longer silence it may have missed messages, or regard
  /// ranks as silent.
  static constexpr double kInterrupted_s = 3;

  /// Call for another connection: nothing was sent over it yet, and a hello is due.
  void begin_anew() noexcept {
    wait_s_ = kFirst_s;
    next_s_ = 0;
    named_ = false;
    above_ = 0;
  }
  /// Call when the connection is lost: no hello is due before begin_anew().
  void connection_ended() noexcept {
    begin_anew();
    next_s_ = std::numeric_limits<double>::infinity();
  }
  /// True where a hello is due, which is then sent.
  [[nodiscard]] bool due(double now_s) noexcept {
    if (now_s < next_s_) return false;
    wait_s_ = known() ? kEvery_s : std::min(2 * wait_s_, kEvery_s);
    next_s_ = now_s + wait_s_;
    return true;
  }
  /// `taken`: the connection accepted the hello.
  void hello_sent(bool taken) noexcept { named_ = named_ || taken; }
  /// Whether a hello was sent over this connection: the ranks' messages may follow.
  [[nodiscard]] bool named() const noexcept { return named_; }
  /// Whether the collector above has pinged over this connection, and so has accepted the node's hello.
  [[nodiscard]] bool known() const noexcept { return above_ != 0; }
  /// Process `above` has pinged. True where it is another process than before, or may have missed messages:
  /// the caller then relays everything again.
  [[nodiscard]] bool pinged(std::uint64_t above, double now_s) noexcept {
    const bool anew = above != above_ || now_s - last_ping_s_ > kInterrupted_s;
    above_ = above;
    last_ping_s_ = now_s;
    return anew;
  }

 private:
  double wait_s_ = kFirst_s, next_s_ = 0;
  bool named_ = false;
  std::uint64_t above_ = 0;  ///< process of the collector above
  double last_ping_s_ = 0;   ///< time of its last ping
};

}  // namespace shardscope::collector
