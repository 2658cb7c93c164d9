// How much of each step a rank took by itself: what is left of a step without its exposed communication
// (metrics.md 2.15). Measured while blocks are made, when the spans are there.
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

/// Of one step of one rank.
struct OwnTime {
  std::uint32_t step = 0;
  /// Step time without pauses, checkpoints and `waited_ns`: computation, exposed copies and idle time.
  std::int64_t own_ns = 0;
  /// Exposed communication: while the rank waited for others or for bytes, and computed nothing.
  std::int64_t waited_ns = 0;
};

/// What of a run says how its spans are to be read.
struct OwnTimeSource {
  bool of_host = false;  ///< has_times_of_host(): only records of the GPU say what the device did
  bool of_gpu = false;   ///< such records may come, later than the step
  /// Of frameworks of which only the optimizer may be recorded: such a step is not known.
  bool may_lack_modules = false;
  bool collectives = true;  ///< the program records them
  [[nodiscard]] static OwnTimeSource of(const ev::RunTables& tables);
};

/// Of one rank, by the rules of analysis::partition_time(), which needs the events of the step at once.
/// Memory: the spans of steps that were not measured yet, joined; kMostPending intervals.
class OwnTimeOfRank {
 public:
  static constexpr std::size_t kMostPending = std::size_t{1} << 14;
  /// Steps for which records of the GPU are waited for.
  static constexpr std::size_t kMostHeld = 64;

  /// The spans that ended in the stretch of `state`, before it begins the next one. `gap`: events before the
  /// stretch are missing. Returns the steps that ended before this stretch and of which all is known: spans
  /// of other threads may come a stretch later than the step's end.
  [[nodiscard]] std::vector<OwnTime> take(const RankState& state, const OwnTimeSource& source, bool gap);
  /// The steps that are left; nothing comes after them.
  [[nodiscard]] std::vector<OwnTime> rest(const OwnTimeSource& source);

 private:
  /// What spans say that they are.
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
  /// The first `count` of those that are held.
  std::vector<OwnTime> measure_first(std::size_t count, const OwnTimeSource& source);

  std::array<IntervalSet, kParts> parts_;
  std::array<std::vector<Interval>, kParts> fresh_;
  std::vector<Held> held_;                     ///< in order of time
  std::int64_t lacking_until_ns_ = INT64_MIN;  ///< of steps that began before this something is missing
};

}  // namespace shardscope::store
