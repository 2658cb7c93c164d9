// The tables of a recording, as rows that come in batches: what is long is read block by block.
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

/// Which rows are wanted. What is empty restricts nothing.
struct Filter {
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> kinds;  ///< of spans ("fetch_wait" or "fetch_wait_begin") or of events
  std::vector<std::uint32_t> steps;
  std::int64_t begin_ns = store::Store::kBegin;  ///< what begins before is left out
  std::int64_t end_ns = store::Store::kEnd;      ///< and what begins then or later
  [[nodiscard]] bool empty() const {
    return ranks.empty() && kinds.empty() && steps.empty() && begin_ns == store::Store::kBegin &&
           end_ns == store::Store::kEnd;
  }
};

/// A filter that the recording cannot satisfy: what, value, what to do.
struct BadFilter : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Rows of one table, front to back, once. The store, and what its file says, outlive it.
class Rows {
 public:
  virtual ~Rows() = default;
  [[nodiscard]] virtual const Schema& schema() const = 0;
  /// Adds rows until there are about `most`, or all; false once there is nothing left to come.
  virtual bool fill(Batch& batch, std::size_t most) = 0;
};

/// `table`: spans, events, memory; or one of run_tables() or retained_tables(), which take no filter. Throws
/// BadFilter.
[[nodiscard]] std::unique_ptr<Rows> open_table(const store::Store& store, const store::RecordingInfo& info,
                                               const std::string& table, const Filter& filter);

// ---- the parts that a long table is read in ---------------------------------------------------------------

/// [begin, end) of run time.
struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
};
/// What the filter wants of a rank, ascending. Throws BadFilter where a step is not in the recording.
[[nodiscard]] std::vector<Stretch> wanted(const store::Store& store, std::uint32_t rank,
                                          const Filter& filter);
/// The same, cut where the lane's blocks meet.
[[nodiscard]] std::vector<Stretch> parts(const store::Store& store, store::LaneId lane, const Filter& filter);
/// The ranks wanted. Throws BadFilter for one that is not in the recording.
[[nodiscard]] std::vector<std::uint32_t> ranks_of(const store::Store& store, const Filter& filter);

}  // namespace shardscope::arrow
