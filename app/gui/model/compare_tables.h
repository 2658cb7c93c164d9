// Tables of a comparison: figures with their change in a suitable unit, times per step with the interval of
// their difference, and settings of A and B.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/analysis/compared_rows.h"
#include "app/analysis/summary.h"
#include "app/gui/model/compared_digest.h"
#include "app/gui/model/compared_series.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/session.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// analysis::Difference::change() in words: "-35 points" of shares, else "+12 %".
struct Change {
  std::string text;
  double value = 0;        ///< sort key and length of the bar, in percent or points
  bool in_spread = false;  ///< within the variation between steps of one run
  bool better = false;
};
[[nodiscard]] std::optional<Change> change_of(const analysis::Difference& row);

/// A figure with its unit, scaled for reading.
[[nodiscard]] std::string value_text(const std::optional<double>& value, const std::string& unit);
/// "78 ±0.5 %"; with both units where they differ: "61.5 ms ±382 µs".
[[nodiscard]] std::string with_spread(const std::string& value, const std::string& spread);

/// "-0.30 to +0.12 ms".
[[nodiscard]] std::string interval_text(const analysis::ConfidenceInterval& interval,
                                        const std::string& unit);
/// The 95 % confidence interval of B - A as a cell: interval_text(), muted where it contains zero; a
/// dash whose tooltip says `why_none`. `from`: "of 39 pairs of steps", for the tooltip.
[[nodiscard]] Cell interval_cell(const std::optional<analysis::ConfidenceInterval>& interval,
                                 const std::string& unit, const std::string& from,
                                 const std::string& why_none);

/// Columns: metric, A, B, change, interval of the change. Row i describes `metrics[i]`.
[[nodiscard]] Table metric_table(const analysis::Comparison& comparison);

/// Row i describes `steps.rows[i]`: name, figure (not of phases), medians of A and B, difference with its
/// interval, change. Times of modules include those of child modules.
[[nodiscard]] Table series_table(const ComparedSteps& steps, SeriesOf of, const NameCells& names);
/// Why a row has no interval; empty: it has one.
[[nodiscard]] std::string why_no_interval(const ComparedSeries& row);
/// "h.3.attn forward", "all-gather, time, with waiting".
[[nodiscard]] std::string title_of(const ComparedSeries& row, const NameCells& names);
/// Device memory at the peak by category: A, B and change, largest change first. Empty where it was not
/// recorded in both runs.
[[nodiscard]] Table memory_table(const Session& a, const Session& b);
/// The panel that shows a figure, or what a setting governs.
[[nodiscard]] std::string_view panel_of_metric(std::string_view metric);
[[nodiscard]] std::string_view panel_of_setting(std::string_view key);
/// Splits each "key: before -> after" into three columns.
[[nodiscard]] Table setting_table(const std::vector<std::string>& changes);

}  // namespace shardscope::gui
