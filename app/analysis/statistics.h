// Order statistics of small samples.
#pragma once

#include <vector>

namespace shardscope::analysis {

/// Quantile q in [0,1] with linear interpolation between order statistics (the definition of NumPy's
/// default). `values` must not be empty; NaNs must have been removed.
[[nodiscard]] double quantile(std::vector<double> values, double q);

/// Half the interquartile range: the spread shown behind a median. 0 for fewer than two values.
[[nodiscard]] double half_iqr(const std::vector<double>& values);

}  // namespace shardscope::analysis
