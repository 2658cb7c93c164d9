#include "app/analysis/change_points.h"

#include <algorithm>
#include <limits>

#include "app/analysis/block_interval.h"

namespace shardscope::analysis {

ShapeFits::ShapeFits(const ExcessSeries& series, std::size_t from, std::size_t end)
    : series_(series), from_(from), end_(end), since_(end - from + 1) {
  for (std::size_t i = from; i < end; ++i) largest_ = std::max(largest_, series.steps[i]);
  double weights = 0;
  for (std::size_t i = from; i < end; ++i) {
    weights += weight(i);
    mean_m_ += weight(i) * series.middle_h(i);
    mean_y_ += weight(i) * series.excess[i];
  }
  if (weights > 0) {
    mean_m_ /= weights;
    mean_y_ /= weights;
  }
  for (std::size_t i = end; i-- > from;) {
    Sums sums = since_[i - from + 1];
    const double w = weight(i), m = series.middle_h(i) - mean_m_, y = series.excess[i] - mean_y_;
    sums.w += w;
    sums.m += w * m;
    sums.mm += w * m * m;
    sums.y += w * y;
    sums.my += w * m * y;
    sums.yy += w * y * y;
    since_[i - from] = sums;
  }
  all_ = since_.front();
}

double ShapeFits::weight(std::size_t i) const { return series_.steps[i] / largest_; }

double ShapeFits::x(ChangeShape shape, std::size_t c, std::size_t i) const {
  if (i < c) return 0;
  return shape == ChangeShape::jump ? 1 : series_.middle_h(i) - series_.begin_h[c];
}

FittedLine ShapeFits::fit(ChangeShape shape, std::size_t c) const {
  const Sums& since = since_[c - from_];
  double sx = since.w, sxx = since.w, sxy = since.y;
  if (shape == ChangeShape::ramp) {
    const double begin = series_.begin_h[c] - mean_m_;
    sx = since.m - begin * since.w;
    sxx = since.mm - 2 * begin * since.m + begin * begin * since.w;
    sxy = since.my - begin * since.y;
  }
  FittedLine line;
  line.xx = all_.w > 0 ? std::max(sxx - sx * sx / all_.w, 0.0) : 0;
  // If x is the same for all values, only a rounding error remains.
  constexpr double kNone = 1e-9;
  if (line.xx <= kNone * sxx) {
    line.xx = 0;
    line.a = mean_y_;
    line.rest = all_.yy;
    return line;
  }
  line.b = sxy / line.xx;
  line.a = mean_y_ - line.b * sx / all_.w;
  line.rest = std::max(all_.yy - line.b * sxy, 0.0);
  return line;
}

std::vector<double> ShapeFits::residuals(ChangeShape shape, std::size_t c) const {
  const FittedLine line = fit(shape, c);
  std::vector<double> out;
  for (std::size_t i = from_; i < end_; ++i)
    out.push_back(series_.excess[i] - line.a - line.b * x(shape, c, i));
  return out;
}

ChangePoints change_points(const ShapeFits& fits, ChangeShape shape, std::size_t from, std::size_t end) {
  ChangePoints out{.best = from, .from = from, .rest = {}};
  for (std::size_t c = from; c + kFewestForInterval <= end; ++c) {
    const FittedLine line = fits.fit(shape, c);
    // Only increases are of interest: ignore a rank that becomes faster.
    out.rest.push_back(line.b > 0 ? line.rest : std::numeric_limits<double>::infinity());
    if (out.rest.back() < out.rest[out.best - from]) out.best = c;
  }
  return out;
}

}  // namespace shardscope::analysis
