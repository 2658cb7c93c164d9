// Whether a peer has received the last message sent to it. One connection delivers messages in order, so a
// peer that answers a ping has received every message sent before that ping. Pure.
#pragma once

#include <cstdint>

namespace shardscope::collector {

class AwaitedAnswer {
 public:
  /// A message was sent that the peer has to receive; the next ping has number `next_ping`, above 0.
  void sent_before(std::uint64_t next_ping) noexcept { ping_ = next_ping; }
  void answered(std::uint64_t ping) noexcept {
    if (ping >= ping_) ping_ = 0;
  }
  /// Messages in flight are lost with the connection: no answer is awaited any more.
  void connection_ended() noexcept { ping_ = 0; }
  [[nodiscard]] bool awaited() const noexcept { return ping_ != 0; }

 private:
  std::uint64_t ping_ = 0;  ///< an answer to this or a later ping is awaited; 0: none is
};

}  // namespace shardscope::collector
