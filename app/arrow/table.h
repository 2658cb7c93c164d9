// The tables of a recording as batches of rows: long tables are read block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/arrow/batch.h"
#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::arrow {

/// Selects rows. An empty list restricts nothing.
struct Filter {
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> kinds;  ///< of spans ("fetch_wait" or "fetch_wait_begin") or of events
  std::vector<std::uint32_t> steps;
  std::int64_t begin_ns = store::Store::kBegin;  ///< spans and events that begin earlier are left out
  std::int64_t end_ns = store::Store::kEnd;      ///< and those that begin at this time or later
  [[nodiscard]] bool empty() const {
    return ranks.empty() && kinds.empty() && steps.empty() && begin_ns == store::Store::kBegin &&
           end_ns == store::Store::kEnd;
  }
};

/// A filter that does not fit the recording or the table. The message names the value and says what to do.
struct BadFilter : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The rows of one table, read once from first to last. The store and its RecordingInfo must outlive it.
class Rows {
 public:
  virtual ~Rows() = default;
  [[nodiscard]] virtual const Schema& schema() const = 0;
  /// Appends rows until the batch has about `most` or the table ends; false at the end of the table.
  virtual bool fill(Batch& batch, std::size_t most) = 0;
};

/// `table`: spans, events, memory; or one of run_tables() or retained_tables(), which accept no filter.
/// Throws BadFilter.
[[nodiscard]] std::unique_ptr<Rows> open_table(const store::Store& store, const store::RecordingInfo& info,
                                               const std::string& table, const Filter& filter);

// ---- intervals in which a long table is read --------------------------------------------------------------

/// [begin, end) in run time.
struct ReadInterval {
  std::int64_t begin_ns = 0, end_ns = 0;
};
/// The intervals of a rank that the filter selects, ascending. Throws BadFilter for an unknown step.
[[nodiscard]] std::vector<ReadInterval> wanted(const store::Store& store, std::uint32_t rank,
                                               const Filter& filter);
/// The same intervals, cut at the block boundaries of the lane.
[[nodiscard]] std::vector<ReadInterval> parts(const store::Store& store, store::LaneId lane,
                                              const Filter& filter);
/// The selected ranks, ascending. Throws BadFilter for a rank that is not in the recording.
[[nodiscard]] std::vector<std::uint32_t> ranks_of(const store::Store& store, const Filter& filter);

}  // namespace shardscope::arrow
