// A linear fit from another clock of this machine (CUPTI's) to the host's monotonic clock, from pairs of
// readings.
#pragma once

#include <cstdint>
#include <deque>

namespace shardscope::profile {

/// A reading of both clocks: the host's before and after the other's.
struct ClockPair {
  std::int64_t other_ns = 0;
  std::int64_t host_before_ns = 0, host_after_ns = 0;
};

/// Least squares through the latest pairs. A pair with a wide bracket is less accurate, so weights are 1 /
/// bracket^2. After the other clock was set (CUPTI's is the wall clock), the fit starts again.
class ClockFit {
 public:
  static constexpr std::size_t kPairs = 64;  ///< kept
  /// Pairs must be in order of time. A pair with a negative bracket is ignored.
  void add(const ClockPair& pair);
  /// False until the first pair.
  [[nodiscard]] bool ready() const noexcept { return !pairs_.empty(); }
  /// Converts `other_ns` to the host's clock.
  [[nodiscard]] std::int64_t to_host(std::int64_t other_ns) const noexcept;
  /// Error bound of a converted time: the largest distance of a pair from the line plus half the narrowest
  /// bracket.
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
