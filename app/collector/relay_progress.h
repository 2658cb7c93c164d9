// State of a node's collector between the collector above and its own ranks. Pure: the connection is
// Upstream's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace shardscope::collector {

class RelayProgress {
 public:
  /// A pause from above is sent to a rank with a number of this collector: ranks know no other numbers.
  void pause_passed_on(std::uint32_t rank, std::uint64_t own, std::uint64_t theirs) {
    asked_[rank] = {own, theirs};
  }
  /// The upper collector's number of the pause that a rank answers; nullopt: an answer to an older request.
  [[nodiscard]] std::optional<std::uint64_t> pause_answered(std::uint32_t rank, std::uint64_t own) const {
    const auto asked = asked_.find(rank);
    if (asked == asked_.end() || asked->second.first != own) return std::nullopt;
    return asked->second.second;
  }

  /// Whether the run is over for the node: each of its ranks has ended and the collector above has confirmed
  /// everything (`drained`). That collector may end before its last confirmation arrives here: it is awaited
  /// for `linger_s` at most once everything was sent. When its connection ends, unconfirmed messages count
  /// as unsent again, and will be sent only where there is a connection (`connected`).
  [[nodiscard]] bool over(bool all_ended, bool sent, bool connected, bool drained, double now_s,
                          double linger_s) noexcept {
    if (!all_ended || (!sent && connected)) {
      unsent_s_ = now_s;
      all_sent_ = false;
    }
    all_sent_ |= sent;
    return all_ended && (drained || (all_sent_ && now_s - unsent_s_ > linger_s));
  }

 private:
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>
      asked_;              ///< the last pause: own number, theirs
  bool all_sent_ = false;  ///< once, after every rank had ended
  double unsent_s_ = 0;    ///< last time at which a rank had not ended, or a message was unsent
};

}  // namespace shardscope::collector
