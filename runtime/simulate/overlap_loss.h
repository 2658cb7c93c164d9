// What the kernels of a rank lose to collectives that move beside them. Pure: times in, nanoseconds out.
//
// [Note: lost time is paid later]
// A collective takes processors and memory bandwidth from the kernels beside it: of each nanosecond in which
// both are there they lose a part. How long a collective moves is known only when it ends, and its kernels
// have been played by then: so the next kernel takes that time. A step is as long as it should be; which
// kernel was slow is not shown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace shardscope::simulate {

/// Of one rank.
class OverlapLoss {
 public:
  /// A kernel from `begin_ns` to `end_ns`; in order of time.
  void kernel(std::int64_t begin_ns, std::int64_t end_ns) {
    if (end_ns <= begin_ns) return;
    if (!busy_.empty() && busy_.back().end_ns == begin_ns) {
      busy_.back().end_ns = end_ns;
    } else {
      busy_.push_back({begin_ns, end_ns});
    }
  }

  void transfer_begins(std::int64_t begin_ns) { moving_.push_back(begin_ns); }

  /// One that began at `begin_ns` ends, the first that does after those that ended before, and no kernel or
  /// transfer that begins before `end_ns` is still to come. Returns how long kernels ran beside it.
  std::int64_t transfer_ends(std::int64_t begin_ns, std::int64_t end_ns) {
    std::int64_t beside_ns = 0;
    for (const Span& span : busy_)
      beside_ns +=
          std::max<std::int64_t>(0, std::min(end_ns, span.end_ns) - std::max(begin_ns, span.begin_ns));
    if (const auto at = std::find(moving_.begin(), moving_.end(), begin_ns); at != moving_.end())
      moving_.erase(at);
    std::int64_t needed_ns = end_ns;
    for (const std::int64_t other : moving_) needed_ns = std::min(needed_ns, other);
    while (!busy_.empty() && busy_.front().end_ns <= needed_ns) busy_.pop_front();
    return beside_ns;
  }

 private:
  struct Span {
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  std::deque<Span> busy_;  ///< kernels that a transfer may still have been beside, joined where they touch
  std::vector<std::int64_t> moving_;  ///< when those began that have not ended
};

}  // namespace shardscope::simulate
