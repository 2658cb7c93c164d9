// A line from another clock of this machine (CUPTI's) to the host's monotonic clock, through pairs of both.
#pragma once

#include <cstdint>
#include <deque>

namespace shardscope::profile {

/// Both clocks at once, as nearly as that can be read: the host's before and after the other's.
struct ClockPair {
  std::int64_t other_ns = 0;
  std::int64_t host_before_ns = 0, host_after_ns = 0;
};

/// Least squares through the latest pairs. A pair that took long to read says less than its bracket hides, so
/// pairs weigh 1 / bracket^2. Where the other clock was set (CUPTI's is the wall clock), the line starts anew
/// from there.
class ClockFit {
 public:
  static constexpr std::size_t kPairs = 64;  ///< kept
  /// Pairs must come in order of time. One that was read backwards is left out.
  void add(const ClockPair& pair);
  /// Without a pair there is no line.
  [[nodiscard]] bool ready() const noexcept { return !pairs_.empty(); }
  /// The host's time when the other clock showed `other_ns`.
  [[nodiscard]] std::int64_t to_host(std::int64_t other_ns) const noexcept;
  /// The largest distance of a pair from the line, and half the narrowest bracket: what a converted time may
  /// be wrong by.
  [[nodiscard]] std::int64_t residual_ns() const noexcept { return residual_ns_; }
  /// How much faster the host's clock is, parts per billion.
  [[nodiscard]] std::int64_t drift_ppb() const noexcept;
  [[nodiscard]] std::size_t pairs() const noexcept { return pairs_.size(); }
  /// How often the other clock was set.
  [[nodiscard]] std::uint32_t restarts() const noexcept { return restarts_; }

 private:
  struct Point {
    std::int64_t other_ns = 0;
    std::int64_t host_ns = 0;  ///< middle of the bracket
    std::int64_t bracket_ns = 0;
  };
  void fit() noexcept;

  std::deque<Point> pairs_;
  Point origin_;  ///< the line is host = origin.host + shift + (other - origin.other) (1 + rate)
  double shift_ns_ = 0;
  double rate_ = 0;
  std::int64_t residual_ns_ = 0;
  std::uint32_t restarts_ = 0;
};

}  // namespace shardscope::profile
