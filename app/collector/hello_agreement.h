// Whether the collector above has received the hellos of all ranks that a node's collector lists. Both
// compute the checksum of hello_sum.h; the node sends its own with each of its hellos, the collector above
// with each ping. While they agree no rank's hello is repeated, which saves messages proportional to the
// ranks. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

namespace shardscope::collector {

class HelloAgreement {
 public:
  /// An answer may refer to a sum announced up to this long ago.
  static constexpr double kRecent_s = 3;
  /// A node sends a hello every half second, the collector above a ping every second: a difference that lasts
  /// longer means that hellos were lost or ignored. They are repeated then, at intervals that double up to
  /// kSeldom_s. A collector above that sends no sum gets them at the same intervals.
  static constexpr double kLate_s = 2, kSeldom_s = 10;

  /// Call when all hellos are sent again.
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
  /// The collector above has sent this sum. True where all hellos are to be sent again.
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
