// Tables of the Critical path panel: what bounds a step, the gain if it took no time, and the longest pieces,
// of one run or of A and B.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/analysis/critical_path.h"
#include "app/gui/model/communication_tables.h"
#include "app/gui/model/palette.h"
#include "app/gui/model/session.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

[[nodiscard]] Meaning meaning_of(analysis::PathPart part) noexcept;

/// One part of the path in one run: means over the measured steps with a known path.
struct PathRow {
  analysis::PathPart part{};
  double ms = 0, share_pct = 0;  ///< per step
  /// How much shorter a step would be if the part took no time; for a part below 1 % of a step its own time.
  /// nullopt: undefined for this part (pauses, checkpoints, unrecorded time), or no step could be replayed.
  std::optional<double> gain_ms;
};
/// Longest first. Empty where no path is known.
[[nodiscard]] std::vector<PathRow> path_rows(const analysis::Summary& summary);

/// Rows of the same part are adjacent; parts are sorted by their time in A, then in B.
[[nodiscard]] Table path_table(std::span<const LabelledRun> runs);

/// Pieces and their places, in the order of the table's rows.
struct PieceTable {
  Table table;
  struct Place {
    std::uint32_t rank = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::size_t run = 0;
  };
  std::vector<Place> places;
};
[[nodiscard]] PieceTable piece_table(std::span<const LabelledRun> runs);

}  // namespace shardscope::gui
