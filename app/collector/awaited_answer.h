// Whether a peer has received what was sent to it last. What goes over one connection arrives in order, so
// who answers a ping has received what was sent before it. Pure.
#pragma once

#include <cstdint>

namespace shardscope::collector {

class AwaitedAnswer {
 public:
  /// Something has been sent that the peer has to receive; the next ping has number `next_ping`, above 0.
  void sent_before(std::uint64_t next_ping) noexcept { ping_ = next_ping; }
  void answered(std::uint64_t ping) noexcept {
    if (ping >= ping_) ping_ = 0;
  }
  /// What had not arrived is gone with it.
  void connection_ended() noexcept { ping_ = 0; }
  [[nodiscard]] bool awaited() const noexcept { return ping_ != 0; }

 private:
  std::uint64_t ping_ = 0;  ///< an answer to it or to a later one is awaited; 0: none is
};

}  // namespace shardscope::collector
