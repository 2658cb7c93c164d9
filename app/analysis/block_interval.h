// How sure a mean of a time series is, where neighbours resemble each other: steps of a run do (clocks,
// caches, a neighbour on the machine), so that their scatter alone promises too much.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace shardscope::analysis {

struct ConfidenceInterval {
  double middle = 0, low = 0, high = 0;
  std::size_t blocks = 0;
  [[nodiscard]] bool excludes_zero() const noexcept { return low > 0 || high < 0; }
};
inline constexpr std::size_t kFewestForInterval = 8;

/// By how many standard errors a mean of normally distributed values lies off its truth at most, with this
/// confidence (0.95): the two-sided quantile of Student's t. At least one degree of freedom.
[[nodiscard]] double student_t(double confidence, std::size_t degrees);

/// Student's t over values that depend little on each other; nothing of fewer than two.
[[nodiscard]] std::optional<ConfidenceInterval> mean_interval(std::span<const double> values,
                                                              double confidence = 0.95);

/// [Note: blocks]
/// The series is cut into 4 to 12 blocks of neighbours, whose medians depend little on each other; Student's
/// t over the medians. A median lets a single stop of one step not decide. Nothing for fewer than
/// kFewestForInterval values.
[[nodiscard]] std::optional<ConfidenceInterval> block_interval(std::span<const double> series,
                                                               double confidence = 0.95);

}  // namespace shardscope::analysis
