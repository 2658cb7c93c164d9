// The tables of a comparison: figures with their change in the unit that fits, modules and settings of A
// against B.
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

/// How B differs from A: of a share in points ("-35 points"), of all else in percent of A ("+12 %"). Empty
/// where either is missing or A is 0.
struct Change {
  std::string text;
  double value = 0;        ///< what it sorts by and how long its bar is: percent or points
  bool in_spread = false;  ///< no more than what steps of one run differ by
  bool better = false;
};
[[nodiscard]] std::optional<Change> change_of(const analysis::Difference& row);

/// A figure in the unit that it comes with, scaled to be read.
[[nodiscard]] std::string value_text(const std::optional<double>& value, const std::string& unit);

/// Columns: metric, A, B, change. Row i is that of `metrics[i]`.
[[nodiscard]] Table metric_table(const analysis::Comparison& comparison);

/// 95 % interval of the difference of the medians, B - A, by a percentile bootstrap that gives the same
/// answer each time. Nothing of fewer than three values on a side.
struct Interval {
  double low = 0, high = 0;
};
[[nodiscard]] std::optional<Interval> median_difference(std::span<const double> a, std::span<const double> b);

/// Time of modules per step, mean over the latest `most_steps` completed steps of each run's lowest rank;
/// modules by path and pass, largest difference first. A module's time holds what is inside it.
[[nodiscard]] Table module_table(const Session& a, const Session& b, std::size_t most_steps);
/// Rows of compare_by() (compared_rows.h) of parameters or of memory by category: name, figure, A, B and the
/// change; of parameters over the latest `most_steps` steps of each run, with the interval of the change.
/// Largest change first; nothing where neither run recorded any.
[[nodiscard]] Table compared_table(const Session& a, const Session& b, analysis::CompareBy by,
                                   std::size_t most_steps);
/// Operations: count, bytes and bandwidth, A, B and the change.
[[nodiscard]] Table collective_differences(const Session& a, const Session& b);
/// "key: before -> after" as three columns.
[[nodiscard]] Table setting_table(const std::vector<std::string>& changes);

}  // namespace shardscope::gui
