// Whether the collector above a node's has the hellos of all ranks that the node lists. Both sum up who has
// greeted (greeted_sum.h); the node sends its sum with each hello of its own, the collector above its own
// with each ping. While they agree nothing is repeated: that would be messages of each rank again and again.
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

namespace shardscope::collector {

class GreetingAgreement {
 public:
  /// An answer may be about a sum that was announced so long ago.
  static constexpr double kRecent_s = 3;
  /// A hello of the node is half a second from the next, a ping a second: a difference that lasts longer is
  /// of hellos that were lost or not taken. They are repeated then, and after twice the time if that was of
  /// no use. A collector above that sends no sum gets all of them so often.
  static constexpr double kLate_s = 2, kSeldom_s = 10;

  /// All hellos are sent again.
  void begin(double now_s) noexcept {
    announced_.clear();
    since_s_ = now_s;
    wait_s_ = kLate_s;
  }
  void announced(std::uint64_t sum, double now_s) {
    while (!announced_.empty() && now_s - announced_.front().second > kRecent_s) announced_.pop_front();
    if (!announced_.empty() && announced_.back().first == sum) announced_.pop_back();
    announced_.emplace_back(sum, now_s);
  }
  /// The collector above has this sum. True where all hellos are due again.
  [[nodiscard]] bool answered(std::uint64_t sum, double now_s) noexcept {
    const auto recent = [&](const auto& sum_at) {
      return sum_at.first == sum && now_s - sum_at.second <= kRecent_s;
    };
    if (std::any_of(announced_.begin(), announced_.end(), recent)) {
      since_s_ = now_s;
      wait_s_ = kLate_s;
      return false;
    }
    if (now_s - since_s_ < wait_s_) return false;
    since_s_ = now_s;
    wait_s_ = std::min(2 * wait_s_, kSeldom_s);
    return true;
  }

 private:
  std::deque<std::pair<std::uint64_t, double>>
      announced_;       ///< sums, and when each was announced last; the newest last
  double since_s_ = 0;  ///< the last agreement, or when all were sent again
  double wait_s_ = kLate_s;
};

}  // namespace shardscope::collector
