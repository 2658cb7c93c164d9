// Tables of the Communication panel: operations, ranks, waits and single collectives, of one run, of a range
// of it, or of A and B.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/labelled_run.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// Adds the column with the run's letter, and its cell; none with a single run.
void add_letter(Table& table, std::span<const LabelledRun> runs);
[[nodiscard]] Cell letter_cell(std::span<const LabelledRun> runs, std::size_t run);

/// Operations of each run's lowest rank; rows of the same operation are adjacent.
[[nodiscard]] Table operation_table(std::span<const LabelledRun> runs);

/// How much of each rank's communication was hidden behind computation. Row i describes `rows[i]`.
struct RankTable {
  Table table;
  struct Row {
    const analysis::RankSummary* rank = nullptr;
    std::size_t run = 0;  ///< index into the runs
  };
  std::vector<Row> rows;
};
[[nodiscard]] RankTable overlap_table(std::span<const LabelledRun> runs);

/// Spans and their places, in the order of the table's rows.
struct SpanTable {
  Table table;
  struct Place {
    store::LaneId lane;
    store::Span span;
    std::size_t run = 0;
  };
  std::vector<Place> places;
  bool cut = false;  ///< truncated: there are more
};
/// The longest waits of computation for communication.
[[nodiscard]] SpanTable wait_table(std::span<const LabelledRun> runs);
/// At most `most` collectives of a rank that overlap [begin, end), in order of begin.
[[nodiscard]] SpanTable collective_table(const Session& run, std::uint32_t rank, std::int64_t begin_ns,
                                         std::int64_t end_ns, std::size_t most);

}  // namespace shardscope::gui
