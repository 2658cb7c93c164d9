#include "runtime/profile/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardscope::profile {
namespace {

/// A distance from the line that no drift explains: the other clock was set.
constexpr std::int64_t kJumpNs = 200'000;
/// A rate is used once the pairs span this long: over less, brackets look like drift.
constexpr std::int64_t kRateNeedsNs = 1'000'000'000;

}  // namespace

void ClockFit::add(const ClockPair& pair) {
  if (pair.host_after_ns < pair.host_before_ns) return;
  const Point point{pair.other_ns, pair.host_before_ns + (pair.host_after_ns - pair.host_before_ns) / 2,
                    pair.host_after_ns - pair.host_before_ns};
  if (!pairs_.empty()) {
    const std::int64_t off = std::llabs(to_host(point.other_ns) - point.host_ns);
    if (off > kJumpNs + point.bracket_ns) {
      pairs_.clear();
      ++restarts_;
    }
  }
  pairs_.push_back(point);
  if (pairs_.size() > kPairs) pairs_.pop_front();
  fit();
}

void ClockFit::fit() noexcept {
  origin_ = pairs_.back();
  // Relative to the newest pair, so that doubles hold every digit.
  double weights = 0, x = 0, y = 0;
  for (const Point& point : pairs_) {
    const double weight = 1 / std::pow(static_cast<double>(point.bracket_ns) + 10, 2);
    weights += weight;
    x += weight * static_cast<double>(point.other_ns - origin_.other_ns);
    // The line's deviation from rate 1 is what is fitted: small numbers.
    y +=
        weight * static_cast<double>((point.host_ns - origin_.host_ns) - (point.other_ns - origin_.other_ns));
  }
  x /= weights;
  y /= weights;
  double xx = 0, xy = 0;
  for (const Point& point : pairs_) {
    const double weight = 1 / std::pow(static_cast<double>(point.bracket_ns) + 10, 2);
    const double dx = static_cast<double>(point.other_ns - origin_.other_ns) - x;
    const double dy =
        static_cast<double>((point.host_ns - origin_.host_ns) - (point.other_ns - origin_.other_ns)) - y;
    xx += weight * dx * dx;
    xy += weight * dx * dy;
  }
  const bool long_enough = pairs_.back().other_ns - pairs_.front().other_ns >= kRateNeedsNs;
  rate_ = long_enough && xx > 0 ? xy / xx : 0;
  shift_ns_ = y - rate_ * x;
  std::int64_t narrowest = pairs_.front().bracket_ns;
  residual_ns_ = 0;
  for (const Point& point : pairs_) {
    narrowest = std::min(narrowest, point.bracket_ns);
    // An offset within a wide bracket is no error of the line.
    const std::int64_t off = std::llabs(to_host(point.other_ns) - point.host_ns);
    residual_ns_ = std::max(residual_ns_, off - point.bracket_ns / 2);
  }
  residual_ns_ += narrowest / 2;
}

std::int64_t ClockFit::to_host(std::int64_t other_ns) const noexcept {
  const std::int64_t since = other_ns - origin_.other_ns;
  return origin_.host_ns + since + std::llround(shift_ns_ + rate_ * static_cast<double>(since));
}

std::int64_t ClockFit::drift_ppb() const noexcept { return std::llround(rate_ * 1e9); }

}  // namespace shardscope::profile
