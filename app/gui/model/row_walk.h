// Walking over rows and spans of the timeline with the keyboard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "app/gui/model/hit_rows.h"
#include "app/gui/model/timeline_rows.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct AppState;

/// Index of `row` wherever it is now; nullopt: it is not shown any more.
[[nodiscard]] std::optional<std::size_t> index_of(const TimelineRows& rows, const TimelineRow& row);
/// Index of the row to begin at: that of the selected span, else of the selected rank, else the first. There
/// must be one.
[[nodiscard]] std::size_t row_of_selection(const AppState& app, const TimelineRows& rows);

struct SpanBeside {
  std::optional<store::Span> span;
  bool read = true;  ///< false: not all was read, call again
};
/// The span of a lane's row that begins next after `at_ns`, or last before it. Hidden classes are passed
/// over.
[[nodiscard]] SpanBeside span_beside(const AppState& app, const TimelineRow& row, std::int64_t at_ns,
                                     Toward toward);
/// From the selection if it is on this row, else from the cursor, or the begin of the range where that is not
/// in view: there first the span at that time.
[[nodiscard]] SpanBeside next_on_row(const AppState& app, const TimelineRow& row, Toward toward);

/// Shows or hides the lanes of a rank, or the ranks of a group; no effect on other rows.
void set_expanded(TimelineOptions& options, const TimelineRow& row, bool expanded);

}  // namespace shardscope::gui
