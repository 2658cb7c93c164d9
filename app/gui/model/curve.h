// Curves as points: thinned to what a plot has pixels for, with the range that its axis needs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::gui {

struct CurvePoints {
  std::vector<double> x, y;  ///< NaN in y: the line is broken there
};

/// values[i] at first + i, for the x in [begin, end]: every value while there are at most `columns` of them,
/// else the lowest and the highest of each column, so that no spike is lost. One value beside each end is
/// kept, that the line leaves the plot where it should.
[[nodiscard]] CurvePoints thinned(std::span<const double> values, double first, double begin, double end,
                                  std::size_t columns);

struct ValueRange {
  double low = 0, high = 1;
};
/// That holds all finite values, with a little room above and below (below not, when it begins at 0); nothing
/// where none is finite, or positive on a logarithmic axis.
enum class Zero : bool { not_shown, shown };
enum class Scale : bool { linear, logarithmic };
[[nodiscard]] std::optional<ValueRange> value_range(std::span<const std::vector<double>> curves, Zero zero,
                                                    Scale scale);

/// The finite ones.
[[nodiscard]] std::vector<double> finite(std::span<const double> values);

}  // namespace shardscope::gui
