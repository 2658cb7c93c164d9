// Where a series left its level, by least squares: at once, or along a straight line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/analysis/excess_series.h"

namespace shardscope::analysis {

/// y = a + b x, each stretch weighted by its steps.
struct FittedLine {
  double a = 0, b = 0;
  double xx = 0;    ///< weighted squares of x off its mean
  double rest = 0;  ///< weighted squares that are left
};

enum class ChangeShape : std::uint8_t {
  jump,  ///< x is 0 before stretch c and 1 from it on
  ramp,  ///< x is 0 before stretch c, and from its begin on the hours since
};

/// Of stretches [from, end) of a series, which must outlive it. O(1) for each stretch where a change may lie.
class ShapeFits {
 public:
  ShapeFits(const ExcessSeries& series, std::size_t from, std::size_t end);
  [[nodiscard]] FittedLine fit(ChangeShape shape, std::size_t c) const;
  [[nodiscard]] double rest_of_constant() const noexcept { return all_.yy; }
  /// What the shape that changes at `c` leaves of each stretch.
  [[nodiscard]] std::vector<double> residuals(ChangeShape shape, std::size_t c) const;
  [[nodiscard]] double x(ChangeShape shape, std::size_t c, std::size_t i) const;

 private:
  /// Over the stretches from one on to the end; m: middle in hours, y: excess, both less their means.
  struct Sums {
    double w = 0, m = 0, mm = 0, y = 0, my = 0, yy = 0;
  };
  [[nodiscard]] double weight(std::size_t i) const;

  const ExcessSeries& series_;
  std::size_t from_, end_;
  double largest_ = 1, mean_m_ = 0, mean_y_ = 0;
  Sums all_;
  std::vector<Sums> since_;  ///< by stretch, from_ first
};

/// For each stretch in which the change may lie what is left; where the series falls: infinity.
struct ChangePoints {
  std::size_t best = 0;      ///< of the series
  std::size_t from = 0;      ///< stretch of rest[0]
  std::vector<double> rest;  ///< at least kFewestForInterval stretches follow each
};
[[nodiscard]] ChangePoints change_points(const ShapeFits& fits, ChangeShape shape, std::size_t from,
                                         std::size_t end);

}  // namespace shardscope::analysis
