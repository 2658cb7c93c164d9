// Curves as points, reduced to the pixels of a plot, and the range of their axis.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::gui {

struct CurvePoints {
  std::vector<double> x, y;  ///< NaN in y breaks the line
};

/// Points (first + i, values[i]) with x in [begin, end]: all of them up to `columns`, else the minimum and
/// maximum of each column, so that no spike is lost. One point beyond each end is kept, so that the line
/// reaches the edges.
[[nodiscard]] CurvePoints thinned(std::span<const double> values, double first, double begin, double end,
                                  std::size_t columns);

struct ValueRange {
  double low = 0, high = 1;
};
enum class Zero : bool { not_shown, shown };
enum class Scale : bool { linear, logarithmic };
/// Range of all finite values, with a margin above and below (none below where it begins at 0); nullopt where
/// no value is finite, or positive on a logarithmic axis.
[[nodiscard]] std::optional<ValueRange> value_range(std::span<const std::vector<double>> curves, Zero zero,
                                                    Scale scale);

/// Whether the values are positive and span at least three decades: a linear axis would show the largest
/// alone.
[[nodiscard]] bool spans_decades(std::span<const std::vector<double>> curves);

/// Replaces values that a logarithmic axis cannot show, those up to 0, by NaN. Returns their number.
std::size_t drop_not_positive(std::vector<double>& values);

/// `bins` + 1 edges from `low` to `high` with equal ratios; both positive.
[[nodiscard]] std::vector<double> log_edges(double low, double high, std::size_t bins);
/// Fraction of `values` in each bin between two `edges`; the last bin includes its upper edge.
[[nodiscard]] std::vector<double> shares_in(std::span<const double> values, std::span<const double> edges);

/// Drops values that are not finite.
[[nodiscard]] std::vector<double> finite(std::span<const double> values);

}  // namespace shardscope::gui
