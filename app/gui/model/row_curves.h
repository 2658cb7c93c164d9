// Curves on rows of the timeline: a counter of one rank, or of all ranks, over time.
#pragma once

#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/step_series.h"

namespace shardscope::gui {

struct RowCurve {
  std::vector<ColumnRange> columns;          ///< divide the range evenly
  std::vector<store::MemorySample> samples;  ///< memory counters: the maximum of each column
  std::string instead;  ///< why there is no curve; empty: there is one, or it is being read
  /// The maximum shown; 0 without values.
  [[nodiscard]] double highest() const noexcept;
  [[nodiscard]] double lowest() const noexcept;
};
/// Description of the counter, for a menu and a tooltip.
[[nodiscard]] const char* meaning_text(RowCounter counter) noexcept;
/// "14.2M", "12.0 MiB", "61.5 ms"
[[nodiscard]] std::string value_text(RowCounter counter, double value);
/// The curve of a rank (for a counter of all ranks `rank` is ignored) in `count` columns of `range`.
[[nodiscard]] RowCurve row_curve(AppState& app, RowCounter counter, std::uint32_t rank, TimeRange range,
                                 std::size_t count);
/// Tooltip at a time: the value, and for memory the largest categories.
[[nodiscard]] std::string tip_of(const AppState& app, RowCounter counter, std::uint32_t rank,
                                 const RowCurve& curve, TimeRange range, std::int64_t at_ns);

/// State of a parameter at a time, since when, why and until when: "layer.weight on rank 2: in flight for 0.3
/// ms, prefetched for layer".
[[nodiscard]] std::string status_tip(const AppState& app, std::uint32_t param, std::uint32_t rank,
                                     const std::vector<StatusPiece>& pieces, std::int64_t at_ns);
/// Message for a range with too many events to read.
[[nodiscard]] const char* too_much_text() noexcept;
/// What the curve rows and bands need of each rank.
[[nodiscard]] RankTracks::Wanted wanted_of(const TimelineOptions& options);

}  // namespace shardscope::gui
