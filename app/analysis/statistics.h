// Order statistics of small samples.
#pragma once

#include <vector>

namespace shardscope::analysis {

/// Quantile q in [0,1] with linear interpolation between order statistics (NumPy's default). `values` must
/// not be empty or contain NaN.
[[nodiscard]] double quantile(std::vector<double> values, double q);

/// Half the interquartile range: the spread shown with a median. 0 for fewer than two values.
[[nodiscard]] double half_iqr(const std::vector<double>& values);

}  // namespace shardscope::analysis
