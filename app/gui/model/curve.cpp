#include "app/gui/model/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardscope::gui {

CurvePoints thinned(std::span<const double> values, double first, double begin, double end,
                    std::size_t columns) {
  CurvePoints out;
  if (values.empty() || columns == 0) return out;
  const auto last = static_cast<double>(values.size() - 1);
  const auto from = static_cast<std::size_t>(std::clamp(std::floor(begin - first), 0.0, last));
  const auto to = static_cast<std::size_t>(std::clamp(std::ceil(end - first), 0.0, last));
  const std::size_t count = to - from + 1;
  const std::size_t stride = (count + columns - 1) / columns;
  const auto put = [&](std::size_t i) {
    out.x.push_back(first + static_cast<double>(i));
    out.y.push_back(values[i]);
  };
  for (std::size_t i = from; i <= to; i += stride) {
    std::optional<std::size_t> low;
    std::optional<std::size_t> high;
    for (std::size_t k = i; k <= std::min(to, i + stride - 1); ++k) {
      if (!std::isfinite(values[k])) continue;
      if (!low || values[k] < values[*low]) low = k;
      if (!high || values[k] > values[*high]) high = k;
    }
    if (!low) {
      out.x.push_back(first + static_cast<double>(i));
      out.y.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    put(std::min(*low, *high));
    if (*low != *high) put(std::max(*low, *high));
  }
  return out;
}

std::optional<ValueRange> value_range(std::span<const std::vector<double>> curves, Zero zero, Scale scale) {
  ValueRange out{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const std::vector<double>& curve : curves) {
    for (const double value : curve) {
      if (!std::isfinite(value) || (scale == Scale::logarithmic && value <= 0)) continue;
      out.low = std::min(out.low, value);
      out.high = std::max(out.high, value);
    }
  }
  if (out.low > out.high) return std::nullopt;
  if (scale == Scale::logarithmic) return ValueRange{out.low / 1.2, out.high * 1.2};
  const bool from_zero = zero == Zero::shown && out.low >= 0;
  if (from_zero) out.low = 0;
  double room = 0.08 * (out.high - out.low);
  // A constant curve has no height.
  if (room < 1e-12 * std::fabs(out.high)) room = std::max(1e-9, 0.05 * std::fabs(out.high));
  if (room == 0) room = 1;
  out.high += room;
  if (!from_zero) out.low -= room;
  return out;
}

bool spans_decades(std::span<const std::vector<double>> curves) {
  constexpr double kDecades = 1000;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const std::vector<double>& curve : curves) {
    for (const double value : curve) {
      if (!std::isfinite(value)) continue;
      if (value <= 0) return false;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  return high >= low * kDecades;
}

std::size_t drop_not_positive(std::vector<double>& values) {
  std::size_t dropped = 0;
  for (double& value : values) {
    if (!std::isfinite(value) || value > 0) continue;
    value = std::numeric_limits<double>::quiet_NaN();
    ++dropped;
  }
  return dropped;
}

std::vector<double> log_edges(double low, double high, std::size_t bins) {
  std::vector<double> out(bins + 1);
  for (std::size_t i = 0; i <= bins; ++i)
    out[i] = low * std::pow(high / low, static_cast<double>(i) / static_cast<double>(bins));
  out.back() = high;
  return out;
}

std::vector<double> shares_in(std::span<const double> values, std::span<const double> edges) {
  std::vector<double> out(edges.size() - 1, 0);
  if (values.empty()) return out;
  for (const double value : values) {
    if (!(value >= edges.front() && value <= edges.back())) continue;
    const auto above = std::ranges::upper_bound(edges, value) - edges.begin();
    out[std::min(static_cast<std::size_t>(above), out.size()) - 1] += 1 / static_cast<double>(values.size());
  }
  return out;
}

std::vector<double> finite(std::span<const double> values) {
  std::vector<double> out;
  std::ranges::copy_if(values, std::back_inserter(out), [](double value) { return std::isfinite(value); });
  return out;
}

}  // namespace shardscope::gui
