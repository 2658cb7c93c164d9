// The curves on rows of the timeline: what of a rank, or of all ranks, they show over time.
#pragma once

#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/step_series.h"

namespace shardscope::gui {

struct RowCurve {
  std::vector<ColumnRange> columns;          ///< that divide the range evenly
  std::vector<store::MemorySample> samples;  ///< of memory, the highest of each column
  std::string instead;  ///< why there is no curve, in words; empty: there is one, or it is being read
  /// The highest that is shown; 0: nothing is.
  [[nodiscard]] double highest() const noexcept;
  [[nodiscard]] double lowest() const noexcept;
};
/// In words, for a menu and a tip.
[[nodiscard]] const char* meaning_text(RowCounter counter) noexcept;
/// "14.2M", "12.0 MiB", "61.5 ms"
[[nodiscard]] std::string value_text(RowCounter counter, double value);
/// Of a rank, or of one of all ranks without one, in `count` columns of `range`.
[[nodiscard]] RowCurve row_curve(AppState& app, RowCounter counter, std::uint32_t rank, TimeRange range,
                                 std::size_t count);
/// What it says of a time: value, and of memory its largest categories.
[[nodiscard]] std::string tip_of(const AppState& app, RowCounter counter, std::uint32_t rank,
                                 const RowCurve& curve, TimeRange range, std::int64_t at_ns);

/// Where a parameter was at a time, since when, why, and until when: "layer.weight on rank 2: in flight for
/// 0.3 ms, prefetched for layer".
[[nodiscard]] std::string status_tip(const AppState& app, std::uint32_t param, std::uint32_t rank,
                                     const std::vector<StatusPiece>& pieces, std::int64_t at_ns);
/// Said where a range has too many events to be read.
[[nodiscard]] const char* too_much_text() noexcept;
/// What rows of curves and bands need of each rank.
[[nodiscard]] RankTracks::Wanted wanted_of(const TimelineOptions& options);

}  // namespace shardscope::gui
