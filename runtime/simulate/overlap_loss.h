// Time that the kernels of a rank lose to concurrent collectives. Pure: times in, nanoseconds out.
//
// [Note: lost time is deferred]
// A collective takes processors and memory bandwidth from concurrent kernels: they lose a fixed part of the
// overlapping time, independent of the number of collectives. The duration of a collective is known only when
// it ends, after the kernels beside it have been played. So the lost time is deferred: idle time of the
// compute stream after them is subtracted first, since they could have taken longer without delaying
// anything, and the next kernel is extended by the remainder. So the wrong kernel may look slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace shardscope::simulate {

/// Of one rank.
class OverlapLoss {
 public:
  /// `part`: the part of overlapping time that a kernel loses, from 0 to 1.
  explicit OverlapLoss(double part = 0) : part_(part) {}

  /// A kernel begins at `begin_ns`, in order of time. Returns the nanoseconds by which it is extended.
  double deferred_at(std::int64_t begin_ns) {
    const double idle_ns = ended_ns_ == kNever ? 0 : static_cast<double>(begin_ns - ended_ns_);
    const double deferred_ns = std::max(0.0, deferred_ns_ - idle_ns);
    deferred_ns_ = 0;
    return deferred_ns;
  }
  /// It has ended.
  void kernel(std::int64_t begin_ns, std::int64_t end_ns) {
    ended_ns_ = end_ns;
    if (end_ns <= begin_ns) return;
    if (!busy_.empty() && busy_.back().end_ns == begin_ns) {
      busy_.back().end_ns = end_ns;
    } else {
      busy_.push_back({begin_ns, end_ns});
    }
  }

  void transfer_begins(std::int64_t begin_ns) { moving_.push_back(begin_ns); }

  /// A transfer that began at `begin_ns` ends. Calls are in order of end, and no kernel or transfer that
  /// begins before `end_ns` may follow, which the engine's order of work ensures (see
  /// Playback::end_transfer).
  void transfer_ends(std::int64_t begin_ns, std::int64_t end_ns) {
    if (const auto at = std::find(moving_.begin(), moving_.end(), begin_ns); at != moving_.end())
      moving_.erase(at);
    // Those still running move until `end_ns` too, so together they cover the time since the first of them
    // began.
    std::int64_t from_ns = begin_ns;
    for (const std::int64_t other : moving_) from_ns = std::min(from_ns, other);
    from_ns = std::max(from_ns, counted_ns_);
    counted_ns_ = end_ns;
    // Idle time between kernels already played is subtracted, too.
    double lost_ns = 0;
    std::int64_t before_ns = kNever;  // end of the span before
    for (const Span& span : busy_) {
      if (before_ns != kNever)
        lost_ns = std::max(0.0, lost_ns - static_cast<double>(span.begin_ns - before_ns));
      before_ns = span.end_ns;
      const std::int64_t beside_ns = std::min(end_ns, span.end_ns) - std::max(from_ns, span.begin_ns);
      lost_ns += part_ * static_cast<double>(std::max<std::int64_t>(0, beside_ns));
    }
    deferred_ns_ += lost_ns;
    while (!busy_.empty() && busy_.front().end_ns <= end_ns) busy_.pop_front();
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  struct Span {
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  double part_;
  double deferred_ns_ = 0;
  std::int64_t ended_ns_ = kNever;    ///< the last kernel
  std::int64_t counted_ns_ = kNever;  ///< end of the time already counted for collectives
  std::deque<Span> busy_;             ///< kernels that end after that, adjacent ones merged
  std::vector<std::int64_t> moving_;  ///< begin of each unfinished transfer
};

}  // namespace shardscope::simulate
