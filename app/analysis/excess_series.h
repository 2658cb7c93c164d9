// By how much each rank's own time exceeds that of the other ranks, stretch by stretch, and its variance
// where nothing changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// One rank, over the stretches in which it and another rank were measured in enough steps.
struct ExcessSeries {
  std::uint32_t rank = 0;
  /// Own time / median of the other ranks - 1. One or two stretches far from their neighbours are a stop, not
  /// a change: they are clamped.
  std::vector<double> excess;
  std::vector<double> own_ms, others_ms;  ///< per step
  std::vector<double> steps;              ///< measured steps of the stretch
  std::vector<double> begin_h, end_h;     ///< of the stretch, in run time
  std::vector<std::uint32_t> first_step;
  [[nodiscard]] std::size_t size() const noexcept { return excess.size(); }
  [[nodiscard]] double middle_h(std::size_t i) const { return (begin_h[i] + end_h[i]) / 2; }
};

/// Sorted by rank. A stretch excludes ranks measured in less than half as many steps as the median rank:
/// their mean is not over the same steps.
[[nodiscard]] std::vector<ExcessSeries> excess_series(std::span<const store::OwnTimeRow> times,
                                                      std::span<const store::StepRow> steps);

/// [Note: neighbours resemble each other]
/// Consecutive stretches are not independent: temperature or a neighbour's load lasts. The variance is
/// therefore that of a first-order autoregressive process: n stretches are worth n / inflation() independent
/// ones. Slower variation than that between neighbours (a daily rhythm in hourly stretches) is not modelled.
struct Scatter {
  double deviation = 0;   ///< standard deviation of one stretch
  double neighbours = 0;  ///< correlation of consecutive stretches, at least 0
  /// Factor on the variance of a mean of many stretches, compared with independent ones.
  [[nodiscard]] double inflation() const noexcept { return (1 + neighbours) / (1 - neighbours); }
  /// Variance of the mean of `n` consecutive stretches.
  [[nodiscard]] double variance_of_mean(std::size_t n) const noexcept;
};
[[nodiscard]] Scatter scatter_of(std::span<const double> residuals);
/// The median over ranks: with few stretches a rank's own estimate is often too small by chance.
[[nodiscard]] Scatter typical_scatter(std::span<const ExcessSeries> ranks);
[[nodiscard]] Scatter larger_of(const Scatter& a, const Scatter& b) noexcept;

}  // namespace shardscope::analysis
