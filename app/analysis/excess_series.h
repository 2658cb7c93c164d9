// By how much each rank's own time lies above that of the others, stretch by stretch, and how that scatters
// where nothing changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// One rank over the stretches in which it and another were measured in enough steps.
struct ExcessSeries {
  std::uint32_t rank = 0;
  /// Own time / median of the others - 1. One stretch or two that lie far off their neighbours were a stop,
  /// and are moved to these: a stop is no change.
  std::vector<double> excess;
  std::vector<double> own_ms, others_ms;  ///< of a step
  std::vector<double> steps;              ///< how many of the stretch were measured
  std::vector<double> begin_h, end_h;     ///< of the stretch, run's clock
  std::vector<std::uint32_t> first_step;
  [[nodiscard]] std::size_t size() const noexcept { return excess.size(); }
  [[nodiscard]] double middle_h(std::size_t i) const { return (begin_h[i] + end_h[i]) / 2; }
};

/// By rank. Of a stretch the ranks that were measured in less than half as many steps as the median rank are
/// left out: a mean over few steps is not of the same steps.
[[nodiscard]] std::vector<ExcessSeries> excess_series(std::span<const store::OwnTimeRow> times,
                                                      std::span<const store::StepRow> steps);

/// [Note: neighbours resemble each other]
/// Stretches of a machine are no independent draws: its temperature or a neighbour's load lasts. So the
/// scatter is that of an autoregressive process of first order: n stretches are worth n / inflation()
/// independent ones. What lasts longer than neighbours show (a day's rhythm over stretches of an hour) is not
/// in it.
struct Scatter {
  double deviation = 0;   ///< standard deviation of a stretch
  double neighbours = 0;  ///< correlation of one stretch with the next, 0 or above
  /// By how much the variance of a mean of very many stretches is larger than that of independent ones.
  [[nodiscard]] double inflation() const noexcept { return (1 + neighbours) / (1 - neighbours); }
  /// Variance of the mean of `n` stretches in a row.
  [[nodiscard]] double variance_of_mean(std::size_t n) const noexcept;
};
[[nodiscard]] Scatter scatter_of(std::span<const double> residuals);
/// The median of the ranks': of few stretches a rank's own would often be too small by chance.
[[nodiscard]] Scatter typical_scatter(std::span<const ExcessSeries> ranks);
[[nodiscard]] Scatter larger_of(const Scatter& a, const Scatter& b) noexcept;

}  // namespace shardscope::analysis
