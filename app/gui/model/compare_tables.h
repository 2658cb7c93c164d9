// Tables of a comparison: figures with their change in a suitable unit, modules and settings of A and
// B.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/analysis/compared_rows.h"
#include "app/analysis/summary.h"
#include "app/gui/model/session.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// Change from A to B: in points for shares ("-35 points"), else in percent of A ("+12 %"). nullopt where
/// either is missing or A is 0.
struct Change {
  std::string text;
  double value = 0;        ///< sort key and length of the bar, in percent or points
  bool in_spread = false;  ///< within the variation between steps of one run
  bool better = false;
};
[[nodiscard]] std::optional<Change> change_of(const analysis::Difference& row);

/// A figure with its unit, scaled for reading.
[[nodiscard]] std::string value_text(const std::optional<double>& value, const std::string& unit);

/// Columns: metric, A, B, change. Row i describes `metrics[i]`.
[[nodiscard]] Table metric_table(const analysis::Comparison& comparison);

/// 95 % interval of the difference of medians, B - A, by a percentile bootstrap with a fixed seed. nullopt
/// with fewer than three values on a side.
struct Interval {
  double low = 0, high = 0;
};
[[nodiscard]] std::optional<Interval> median_difference(std::span<const double> a, std::span<const double> b);

/// Mean time per step of each module (path and pass) over the latest `most_steps` completed steps of each
/// run's lowest rank, largest difference first. Includes the time of nested modules.
[[nodiscard]] Table module_table(const Session& a, const Session& b, std::size_t most_steps);
/// Rows of compare_by() (compared_rows.h) for parameters, or for memory by category: name, figure, A, B and
/// change. Parameters: over the latest `most_steps` steps of each run, with the interval of the change.
/// Largest change first; empty where neither run recorded any.
[[nodiscard]] Table compared_table(const Session& a, const Session& b, analysis::CompareBy by,
                                   std::size_t most_steps);
/// Collective operations: count, bytes and bandwidth of A and B, and the change.
[[nodiscard]] Table collective_differences(const Session& a, const Session& b);
/// Splits each "key: before -> after" into three columns.
[[nodiscard]] Table setting_table(const std::vector<std::string>& changes);

}  // namespace shardscope::gui
