// The own time of a rank in each step: the step without its exposed communication
// (metrics.md 2.15). Measured while blocks are made, when the spans are in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "app/store/interval_set.h"
#include "app/store/rank_state.h"
#include "instrumentation/run_tables.h"

namespace shardscope::store {

/// One step of one rank.
struct OwnTime {
  std::uint32_t step = 0;
  /// Step time without pauses, checkpoints and `waited_ns`: computation, exposed copies and idle time.
  std::int64_t own_ns = 0;
  /// Exposed communication: time in which the rank waited for others or for bytes, and computed nothing.
  std::int64_t waited_ns = 0;
};

/// Properties of a run that decide how its spans are interpreted.
struct OwnTimeSource {
  bool of_host = false;  ///< has_times_of_host(): only GPU records have device times
  bool of_gpu = false;   ///< GPU records may arrive, later than the step
  /// Frameworks that may record only the optimizer: such a step's own time is unknown.
  bool may_lack_modules = false;
  bool collectives = true;  ///< the program records them
  [[nodiscard]] static OwnTimeSource of(const ev::RunTables& tables);
};

/// Own times of one rank, by the rules of analysis::partition_time(), which needs a step's events at once.
/// Memory: the merged intervals of steps that are not measured yet; at most kMostPending.
class OwnTimeOfRank {
 public:
  static constexpr std::size_t kMostPending = std::size_t{1} << 14;
  /// Most steps that wait for GPU records.
  static constexpr std::size_t kMostHeld = 64;

  /// Adds the spans that ended in `state`, before its next block begins. `gap`: events before the
  /// block are missing. Returns the steps that ended in earlier blocks and are complete: spans
  /// of other threads may arrive one block later than the step's end.
  [[nodiscard]] std::vector<OwnTime> take(const RankState& state, const OwnTimeSource& source, bool gap);
  /// The remaining steps; no block may follow.
  [[nodiscard]] std::vector<OwnTime> rest(const OwnTimeSource& source);

 private:
  /// Use of a span's interval.
  enum Part : std::size_t {
    elsewhere,
    kernels,
    modules,
    work,
    waits,
    worker,
    comm,
    gpu_compute,
    gpu_comm,
    records
  };
  static constexpr std::size_t kParts = 10;
  struct Held {
    std::uint32_t step = 0;
    Interval at;
  };
  void take_span(ev::StreamId stream, const Span& span);
  void forget_before(std::int64_t ns);
  [[nodiscard]] std::size_t pending() const;  ///< intervals
  [[nodiscard]] std::optional<OwnTime> measure(const Held& held, const OwnTimeSource& source) const;
  /// Measures and removes the first `count` steps of held_.
  std::vector<OwnTime> measure_first(std::size_t count, const OwnTimeSource& source);

  std::array<IntervalSet, kParts> parts_;
  std::array<std::vector<Interval>, kParts> fresh_;
  std::vector<Held> held_;                     ///< in order of time
  std::int64_t lacking_until_ns_ = INT64_MIN;  ///< events are missing in steps that began before this
};

}  // namespace shardscope::store
