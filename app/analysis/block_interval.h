// Confidence intervals for the mean of a time series whose neighbouring values are correlated: steps of a run
// are (clocks, caches, load on the machine), so that their variance alone gives too narrow an interval.
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

/// The two-sided quantile of Student's t: with this confidence (0.95) the mean of normally distributed values
/// is within so many standard errors of the true mean. Requires at least one degree of freedom.
[[nodiscard]] double student_t(double confidence, std::size_t degrees);

/// Student's t interval of nearly independent values; nullopt for fewer than two.
[[nodiscard]] std::optional<ConfidenceInterval> mean_interval(std::span<const double> values,
                                                              double confidence = 0.95);

/// [Note: blocks]
/// The series is cut into 4 to 12 blocks of neighbours, whose medians are nearly independent; then Student's
/// t over the medians, wider by what the correlation of neighbouring steps leaves between blocks. A median is
/// robust against a single slow step. nullopt for fewer than kFewestForInterval values.
[[nodiscard]] std::optional<ConfidenceInterval> block_interval(std::span<const double> series,
                                                               double confidence = 0.95);

}  // namespace shardscope::analysis
