// Finds where a series changes its level, by least squares: at once, or along a straight line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/analysis/excess_series.h"

namespace shardscope::analysis {

/// y = a + b x, each value weighted by the number of its steps.
struct FittedLine {
  double a = 0, b = 0;
  double xx = 0;    ///< weighted sum of squares of x around its mean
  double rest = 0;  ///< weighted sum of squared residuals
};

enum class ChangeShape : std::uint8_t {
  jump,  ///< x is 0 before value c and 1 from it on
  ramp,  ///< x is 0 before value c, then the hours since its begin
};

/// Fits over values [from, end) of a series, which must outlive this. O(1) for each candidate change point.
class ShapeFits {
 public:
  ShapeFits(const ExcessSeries& series, std::size_t from, std::size_t end);
  [[nodiscard]] FittedLine fit(ChangeShape shape, std::size_t c) const;
  [[nodiscard]] double rest_of_constant() const noexcept { return all_.yy; }
  /// Residuals of the fit that changes at `c`, one for each value.
  [[nodiscard]] std::vector<double> residuals(ChangeShape shape, std::size_t c) const;
  [[nodiscard]] double x(ChangeShape shape, std::size_t c, std::size_t i) const;

 private:
  /// Sums from one value to the end; m: its middle in hours, y: its excess, both minus their means.
  struct Sums {
    double w = 0, m = 0, mm = 0, y = 0, my = 0, yy = 0;
  };
  [[nodiscard]] double weight(std::size_t i) const;

  const ExcessSeries& series_;
  std::size_t from_, end_;
  double largest_ = 1, mean_m_ = 0, mean_y_ = 0;
  Sums all_;
  std::vector<Sums> since_;  ///< by value, from_ first
};

/// The residual sum of squares for each candidate change point; infinity where the series decreases.
struct ChangePoints {
  std::size_t best = 0;      ///< index in the series
  std::size_t from = 0;      ///< index in the series of rest[0]
  std::vector<double> rest;  ///< at least kFewestForInterval values follow each candidate
};
[[nodiscard]] ChangePoints change_points(const ShapeFits& fits, ChangeShape shape, std::size_t from,
                                         std::size_t end);

}  // namespace shardscope::analysis
