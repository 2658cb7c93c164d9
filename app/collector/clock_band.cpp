#include "app/collector/clock_band.h"

#include <algorithm>

namespace shardscope::collector {

namespace {
constexpr double kFar_ns = static_cast<double>(std::int64_t{1} << 50);
}

ClockBand::ClockBand(std::int64_t near_at_ns, std::int64_t near_offset_ns, double steepest)
    : at_(near_at_ns),
      offset_(near_offset_ns),
      corners_{{-kFar_ns, -steepest}, {kFar_ns, -steepest}, {kFar_ns, steepest}, {-kFar_ns, steepest}} {}

template <typename InsideBy>
bool ClockBand::clip(InsideBy inside_by) {
  // Sutherland and Hodgman, "Reentrant polygon clipping" (1974), for one edge.
  clipped_.clear();
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    const Line& from = corners_[i];
    const Line& to = corners_[(i + 1) % corners_.size()];
    const double a = inside_by(from), b = inside_by(to);
    if (a >= 0) clipped_.push_back(from);
    if ((a < 0) != (b < 0)) {
      const double part = a / (a - b);
      clipped_.push_back(
          {from.at_base + part * (to.at_base - from.at_base), from.drift + part * (to.drift - from.drift)});
    }
  }
  if (clipped_.empty()) return false;
  corners_.swap(clipped_);
  return true;
}

bool ClockBand::at_least(std::int64_t at_ns, std::int64_t offset_ns) {
  const auto x = static_cast<double>(at_ns - at_), y = static_cast<double>(offset_ns - offset_);
  return clip([&](const Line& line) { return line.at_base + line.drift * x - y; });
}

bool ClockBand::at_most(std::int64_t at_ns, std::int64_t offset_ns) {
  const auto x = static_cast<double>(at_ns - at_), y = static_cast<double>(offset_ns - offset_);
  return clip([&](const Line& line) { return y - line.at_base - line.drift * x; });
}

bool ClockBand::drift_within(double steepest) {
  // Scaled to nanoseconds, like offsets.
  return clip([&](const Line& line) { return (steepest - line.drift) * kFar_ns; }) &&
         clip([&](const Line& line) { return (line.drift + steepest) * kFar_ns; });
}

ClockBand::Range ClockBand::at(std::int64_t at_ns) const {
  const auto x = static_cast<double>(at_ns - at_);
  Range range{kFar_ns, -kFar_ns};
  for (const Line& line : corners_) {
    const double y = line.at_base + line.drift * x;
    range.low = std::min(range.low, y);
    range.high = std::max(range.high, y);
  }
  return range;
}

ClockBand::Range ClockBand::drift() const {
  const auto [low, high] = std::minmax_element(
      corners_.begin(), corners_.end(), [](const Line& a, const Line& b) { return a.drift < b.drift; });
  return {low->drift, high->drift};
}

}  // namespace shardscope::collector
