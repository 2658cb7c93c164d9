#include "app/collector/clock_estimator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/collector/plausible_time.h"

namespace shardscope::collector {

namespace {
/// Length of a window, whose tightest readings are kept; short in the beginning: the drift is known soon.
constexpr std::int64_t kShortestWindow = 250'000'000, kWindow = 4'000'000'000;
constexpr std::size_t kWindows = 24;
/// The kernel slews a disciplined clock by 500 parts per million at most: two differ by twice that at most.
constexpr double kSteepest = 1e-3;
/// Clocks wander slowly with temperature: added to a bound per second of age.
constexpr double kWander = 1e-6;
/// Least windows for a drift: with fewer it is almost unknown.
constexpr std::size_t kDriftWindows = 4;

std::int64_t wandered(std::int64_t age_ns) {
  return static_cast<std::int64_t>(std::ceil(kWander * static_cast<double>(std::abs(age_ns))));
}
}  // namespace

void ClockEstimator::add(std::int64_t sent, std::int64_t rank_received, std::int64_t rank_sent,
                         std::int64_t received) {
  // Beyond 36 years sums of four would overflow; no clock has such a reading.
  for (const std::int64_t reading : {sent, rank_received, rank_sent, received}) {
    if (!plausible_time(reading)) return;
  }
  const std::int64_t trip = (received - sent) - (rank_sent - rank_received);
  if (received < sent || rank_sent < rank_received || trip < 0) return;
  const Reading low{rank_received, sent - rank_received}, high{rank_sent, received - rank_sent};
  // The trip itself is certain: where the bounds contradict it, the earlier readings are of another clock.
  if (band_ && (rank_received < windows_.back().begin || bounds(rank_received).high_ns < low.offset ||
                bounds(rank_sent).low_ns > high.offset)) {
    windows_.clear();
    band_.reset();
  }
  const auto length = [&] {
    return std::clamp((rank_received - windows_.front().begin) / 8, kShortestWindow, kWindow);
  };
  if (windows_.empty() || rank_received - windows_.back().begin >= length()) {
    windows_.push_back({rank_received, low, high});
    if (windows_.size() > kWindows) windows_.pop_front();
    fit_older();
  } else if (!keep(low, high)) {
    return;
  }
  fit();
}

bool ClockEstimator::refine(std::int64_t low_at, std::int64_t low_ns, std::int64_t high_at,
                            std::int64_t high_ns) {
  if (same_ || !band_) return false;
  for (const std::int64_t reading : {low_at, low_ns, high_at, high_ns}) {
    if (!plausible_time(reading)) return false;
  }
  if (low_ns > bounds(low_at).high_ns || high_ns < bounds(high_at).low_ns) return false;
  if (keep({low_at, low_ns}, {high_at, high_ns})) fit();
  return true;
}

/// Stores readings in the newest window where they are tighter than its own. Readings of different times are
/// compared along the drift. Returns whether any was stored.
bool ClockEstimator::keep(Reading low, Reading high) {
  Window& window = windows_.back();
  const double drift = drift_ns_per_s() * 1e-9;
  const auto beyond = [&](const Reading& a, const Reading& b) {
    return static_cast<double>(a.offset - b.offset) - drift * static_cast<double>(a.at - b.at);
  };
  const bool more_low = beyond(low, window.low) > 0, more_high = beyond(high, window.high) < 0;
  if (more_low) window.low = low;
  if (more_high) window.high = high;
  return more_low || more_high;
}

namespace {
/// Leaves the lines that agree with both readings, widened by wandered() for their age at `now`.
template <typename Reading>
bool leave(ClockBand& band, const Reading& low, const Reading& high, std::int64_t now) {
  // One nanosecond for rounding.
  return band.at_least(low.at, low.offset - 1 - wandered(now - low.at)) &&
         band.at_most(high.at, high.offset + 1 + wandered(now - high.at));
}
}  // namespace

/// Newest windows first: where an older one agrees with no line that the newer ones leave, a clock was slewed
/// in between; that window and all older ones are discarded.
void ClockEstimator::fit_older() {
  const Reading& now = windows_.back().low;
  older_.emplace(now.at, now.offset, kSteepest);
  ClockBand before = *older_;
  for (std::size_t i = windows_.size() - 1; i-- > 0;) {
    before = *older_;
    if (leave(*older_, windows_[i].low, windows_[i].high, now.at)) continue;
    windows_.erase(windows_.begin(), windows_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    older_ = std::move(before);
    return;
  }
}

/// Where the newest window contradicts the others, they are discarded: it has the latest readings.
void ClockEstimator::fit() {
  const Window newest = windows_.back();
  band_ = older_;
  if (!leave(*band_, newest.low, newest.high, newest.low.at)) {
    windows_.assign(1, newest);
    fit_older();
    band_ = older_;
    if (!leave(*band_, newest.low, newest.high, newest.low.at)) {
      windows_.clear();
      band_.reset();
      return;
    }
  }
  likely_ = band_;
  if (!likely_->drift_within(kUsualDrift)) likely_ = band_;
}

ClockEstimator::Bounds ClockEstimator::bounds(std::int64_t rank_ns) const {
  if (same_ || !band_) return {};
  rank_ns = std::clamp(rank_ns, -kPlausibleTime_ns, kPlausibleTime_ns);
  const ClockBand::Range range = band_->at(rank_ns);
  // Distance in time from the nearest reading.
  const Window &first = windows_.front(), &last = windows_.back();
  const std::int64_t newest = std::max(last.low.at, last.high.at);
  const std::int64_t oldest = std::min(first.low.at, first.high.at);
  std::int64_t age = 0;
  if (rank_ns > newest) age = rank_ns - newest;
  if (rank_ns < oldest) age = oldest - rank_ns;
  return {band_->base_ns() + static_cast<std::int64_t>(std::floor(range.low)) - wandered(age),
          band_->base_ns() + static_cast<std::int64_t>(std::ceil(range.high)) + wandered(age)};
}

std::int64_t ClockEstimator::offset_ns(std::int64_t rank_ns) const {
  if (same_ || !band_) return 0;
  const ClockBand::Range range = likely_->at(std::clamp(rank_ns, -kPlausibleTime_ns, kPlausibleTime_ns));
  return likely_->base_ns() + static_cast<std::int64_t>((range.low + range.high) / 2);
}

std::int64_t ClockEstimator::residual_ns(std::int64_t rank_ns) const {
  const Bounds b = bounds(rank_ns);
  const std::int64_t offset = offset_ns(rank_ns);
  return std::max(b.high_ns - offset, offset - b.low_ns);
}

double ClockEstimator::drift_ns_per_s() const {
  if (!band_ || windows_.size() < kDriftWindows) return 0;
  const ClockBand::Range drift = likely_->drift();
  return (drift.low + drift.high) / 2 * 1e9;
}

}  // namespace shardscope::collector
