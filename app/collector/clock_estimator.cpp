#include "app/collector/clock_estimator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardscope::collector {

namespace {
constexpr std::int64_t kWindow = 2'000'000'000;
constexpr std::size_t kWindows = 60;
constexpr std::int64_t kBelievable = std::int64_t{1} << 60;
/// Crystals differ by less than 100 parts in a million: what an estimate without drift may err by with age.
constexpr double kUnknownDrift = 1e-4;
/// Residual growth once drift is fitted: crystals wander slowly with temperature.
constexpr double kKnownDrift = 1e-6;
}  // namespace

void ClockEstimator::add(std::int64_t sent, std::int64_t rank_received, std::int64_t rank_sent,
                         std::int64_t received) {
  // Beyond 36 years sums of four would overflow; no clock says such things.
  for (const std::int64_t reading : {sent, rank_received, rank_sent, received}) {
    if (reading <= -kBelievable || reading >= kBelievable) return;
  }
  const std::int64_t trip = (received - sent) - (rank_sent - rank_received);
  if (received < sent || rank_sent < rank_received || trip < 0) return;
  const Sample sample{rank_received + (rank_sent - rank_received) / 2,
                      ((sent - rank_received) + (received - rank_sent)) / 2, trip / 2 + 1};
  if (windows_.empty() || sample.at - window_begin_ >= kWindow) {
    window_begin_ = sample.at;
    windows_.push_back(sample);
    if (windows_.size() > kWindows) windows_.pop_front();
  } else if (sample.bound < windows_.back().bound) {
    windows_.back() = sample;
  } else {
    return;
  }
  fit();
}

void ClockEstimator::fit() {
  const Sample& best = *std::min_element(windows_.begin(), windows_.end(),
                                         [](const Sample& a, const Sample& b) { return a.bound < b.bound; });
  base_at_ = best.at;
  base_offset_ = best.offset;
  bound_ = best.bound;
  slope_ = 0;
  if (windows_.size() < 4) return;
  // Weighted least squares around the best sample; a trip twice as long counts a quarter.
  double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const Sample& s : windows_) {
    const double w = 1.0 / (static_cast<double>(s.bound) * static_cast<double>(s.bound));
    const auto x = static_cast<double>(s.at - best.at);
    const auto y = static_cast<double>(s.offset - best.offset);
    sw += w;
    sx += w * x;
    sy += w * y;
    sxx += w * x * x;
    sxy += w * x * y;
  }
  const double determinant = sw * sxx - sx * sx;
  if (determinant <= 0) return;
  slope_ = std::clamp((sw * sxy - sx * sy) / determinant, -kUnknownDrift * 10, kUnknownDrift * 10);
  base_offset_ = best.offset + static_cast<std::int64_t>((sy - slope_ * sx) / sw);
  // Every sample says: the truth is within my bound. The line errs at most as far as it leaves the tightest.
  for (const Sample& s : windows_) {
    const double line = static_cast<double>(base_offset_) + slope_ * static_cast<double>(s.at - base_at_);
    const auto away = static_cast<std::int64_t>(std::abs(line - static_cast<double>(s.offset)));
    if (s.bound <= 2 * best.bound) bound_ = std::max(bound_, away);
  }
}

std::int64_t ClockEstimator::offset_ns(std::int64_t rank_ns) const {
  if (same_ || windows_.empty()) return 0;
  return base_offset_ + static_cast<std::int64_t>(slope_ * static_cast<double>(rank_ns - base_at_));
}

std::int64_t ClockEstimator::residual_ns(std::int64_t rank_ns) const {
  if (same_ || windows_.empty()) return 0;
  // Age since the nearest evidence, not since the best sample: the line is carried by all of them.
  const std::int64_t last = windows_.back().at;
  const std::int64_t first = windows_.front().at;
  std::int64_t age = 0;
  if (rank_ns > last) age = rank_ns - last;
  if (rank_ns < first) age = first - rank_ns;
  const double growth = slope_ != 0 ? kKnownDrift : kUnknownDrift;
  const std::int64_t spread = slope_ != 0 ? 0 : std::max(std::abs(rank_ns - base_at_), age);
  return bound_ + static_cast<std::int64_t>(growth * static_cast<double>(std::max(age, spread)));
}

}  // namespace shardscope::collector
