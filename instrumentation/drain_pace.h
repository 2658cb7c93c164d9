// How often the publisher drains the rings. Each drain wakes its thread and ZeroMQ's, takes a core from a
// computing thread and evicts its caches, so drains are as rare as live viewing allows; a ring that fills
// faster is drained more often. Training threads never wake the publisher: that would cost them a system
// call.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace shardscope::instrumentation {

class DrainPace {
 public:
  /// Delay of a live view, besides its own frame time and the collector's.
  static constexpr std::chrono::milliseconds kLongest{100};
  /// While the collector has no viewer. A killed process loses at most the events of this interval.
  static constexpr std::chrono::milliseconds kUnwatched{250};
  static constexpr std::chrono::milliseconds kShortest{1};

  /// Pause after a drain that found the fullest ring at `fullest_percent`; at most `longest`, which is at
  /// most kUnwatched.
  [[nodiscard]] std::chrono::milliseconds after(std::size_t fullest_percent,
                                                std::chrono::milliseconds longest = kLongest) noexcept {
    if (fullest_percent > 25) {
      pause_ = kShortest;
      return std::chrono::milliseconds(0);
    }
    // A ring should be at most an eighth full: the rate may rise eightfold between two drains.
    if (fullest_percent > 12) pause_ = std::max(pause_ / 2, kShortest);
    if (fullest_percent < 6) pause_ *= 2;
    pause_ = std::min(pause_, std::clamp(longest, kShortest, kUnwatched));
    return pause_;
  }
  /// Restarts with short pauses, which grow again as they did at the start.
  void restart() noexcept { pause_ = kShortest; }

 private:
  std::chrono::milliseconds pause_ = kShortest;
};

}  // namespace shardscope::instrumentation
