// The lists of the Communication panel: operations, ranks, waits and single collectives, of one run or of A
// and B.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "app/gui/model/session.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// A run of the panel. `letter` is empty where only one is open.
struct LabelledRun {
  const Session* run = nullptr;
  const char* letter = "";
};

/// The column that says of which run a row is, and its cell; none where one run is open.
void add_letter(Table& table, std::span<const LabelledRun> runs);
[[nodiscard]] Cell letter_cell(std::span<const LabelledRun> runs, std::size_t run);

/// Operations of each run's lowest rank: the rows of one operation lie under each other.
[[nodiscard]] Table operation_table(std::span<const LabelledRun> runs);

/// How much of each rank's communication was hidden behind computation. Row i is that of `ranks[i]`.
struct RankTable {
  Table table;
  struct Row {
    const analysis::RankSummary* rank = nullptr;
    std::size_t run = 0;  ///< index of the runs
  };
  std::vector<Row> rows;
};
[[nodiscard]] RankTable overlap_table(std::span<const LabelledRun> runs);

/// Spans with where each lies, in the order of the table's rows.
struct SpanTable {
  Table table;
  struct Place {
    store::LaneId lane;
    store::Span span;
    std::size_t run = 0;
  };
  std::vector<Place> places;
  bool cut = false;  ///< there are more
};
/// The longest waits of computation for communication.
[[nodiscard]] SpanTable wait_table(std::span<const LabelledRun> runs);
/// Every collective of a rank that overlaps [begin, end), at most `most`, by begin.
[[nodiscard]] SpanTable collective_table(const Session& run, std::uint32_t rank, std::int64_t begin_ns,
                                         std::int64_t end_ns, std::size_t most);

}  // namespace shardscope::gui
