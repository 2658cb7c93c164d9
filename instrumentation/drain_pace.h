// How often the publisher looks into the rings. Each look wakes it and ZeroMQ's thread, takes a core from
// a computing thread and leaves its caches cold, so looks are as rare as live viewing allows; but a ring
// that fills faster is looked at more often. No thread wakes the publisher: that would be a system call of
// the training thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace shardscope::instrumentation {

class DrainPace {
 public:
  /// What a live view lags behind, its own frame and the collector's round apart.
  static constexpr std::chrono::milliseconds kLongest{100};
  /// While the collector says that there is no viewer. A killed process loses up to this time's events.
  static constexpr std::chrono::milliseconds kUnwatched{250};
  static constexpr std::chrono::milliseconds kShortest{1};

  /// How long to sleep after a look that found the fullest ring so full; at most `longest`, which is at most
  /// kUnwatched.
  [[nodiscard]] std::chrono::milliseconds after(std::size_t fullest_percent,
                                                std::chrono::milliseconds longest = kLongest) noexcept {
    if (fullest_percent > 25) {
      pause_ = kShortest;
      return std::chrono::milliseconds(0);
    }
    // A ring is wanted at most an eighth full: the rate may rise eightfold from one look to the next.
    if (fullest_percent > 12) pause_ = std::max(pause_ / 2, kShortest);
    if (fullest_percent < 6) pause_ *= 2;
    pause_ = std::min(pause_, std::clamp(longest, kShortest, kUnwatched));
    return pause_;
  }
  /// Looks are close together again, and grow rarer as at the beginning.
  void restart() noexcept { pause_ = kShortest; }

 private:
  std::chrono::milliseconds pause_ = kShortest;
};

}  // namespace shardscope::instrumentation
