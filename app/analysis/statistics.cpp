#include "app/analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace shardscope::analysis {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) throw std::invalid_argument("quantile: no values");
  std::sort(values.begin(), values.end());
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

double half_iqr(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

}  // namespace shardscope::analysis
