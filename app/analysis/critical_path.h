// What bounds a step: the chain of work across ranks in which nothing could have begun earlier; and which
// rank waits for which. Definitions: metrics.md 2.12. Pure: a function of the ranks' activity.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

enum class PathPart : std::uint8_t {
  forward,        ///< computation in forward
  backward,       ///< computation in backward
  optimizer,      ///< computation in the optimizer
  compute,        ///< computation outside of these phases
  cpu_optimizer,  ///< of offloaded states
  transfer,       ///< transfer of a collective that every rank has entered
  copy,           ///< between device, host and NVMe
  data,           ///< waiting for the micro-batch
  checkpoint,
  idle,        ///< none of these: host, or work that has no spans
  unrecorded,  ///< events are missing
  paused       ///< by the user: excluded from all other figures
};
inline constexpr std::size_t kPathParts = 12;
[[nodiscard]] const char* name_of(PathPart part) noexcept;   ///< "cpu_optimizer", as JSON spells it
[[nodiscard]] const char* label_of(PathPart part) noexcept;  ///< "CPU optimizer"
using PathTimes = std::array<std::int64_t, kPathParts>;

struct PathPiece {
  PathPart part{};
  std::uint32_t rank = 0;
  Interval at;
  std::uint32_t id = instrumentation::kNoId;  ///< gather or bucket of a transfer; each lane numbers its own
  instrumentation::StreamId lane{};           ///< of a transfer
};

struct CriticalPath {
  Interval window;                ///< from the first rank's begin to the last rank's end
  std::vector<PathPiece> pieces;  ///< in order of time and without gaps: their lengths sum to the window's
  PathTimes times{};              ///< sums of the pieces
};

/// [Note: the walk]
/// Backwards from the end of the rank that ended last. Computation, copies and waits for data are followed as
/// recorded. In an exposed collective the path follows the transfer back to the time at which every rank had
/// entered, and continues on the rank that entered last: only that rank could have shortened it. The rest is
/// idle. nullopt if no rank's computation was recorded.
[[nodiscard]] std::optional<CriticalPath> critical_path(std::span<const RankActivity> ranks);

/// Exposed communication of one rank, split into waiting for other ranks to enter, and transfer.
struct Exposure {
  std::uint32_t rank = 0;
  std::int64_t waiting_ns = 0, moving_ns = 0;  ///< their sum is the rank's exposed communication
  /// Parts of moving_ns: during the transfer of a gather, and during reductions only.
  std::int64_t gather_moving_ns = 0, reduce_moving_ns = 0;
  std::int64_t link_ns = 0;         ///< time of transfers, hidden or exposed
  std::int64_t reduce_link_ns = 0;  ///< of those that are no gathers
  /// Exposed time that gathers would hide if they began as soon as the gather lane was idle before them: for
  /// each the minimum of its exposed time and of that idle time after the last update of parameters.
  std::int64_t hideable_gather_ns = 0;
};
/// How long other ranks waited for a rank that entered last.
struct Lateness {
  std::uint32_t rank = 0;
  std::int64_t others_waited_ns = 0;  ///< exposed, summed over the other ranks
  std::uint32_t collectives = 0;      ///< in which a rank waited above kLate for it
};
/// Exposed time for which one rank waited for another that entered last.
struct WaitedFor {
  std::uint32_t waiter = 0, late = 0;
  std::int64_t ns = 0;
  friend bool operator==(const WaitedFor&, const WaitedFor&) = default;
};
/// Exposed time of one rank in collectives of one group that has not all ranks. Groups in flight at the same
/// time each have the time.
struct GroupExposure {
  std::uint32_t rank = 0;
  std::uint64_t group = 0;  ///< key in RankActivity::groups
  std::int64_t waiting_ns = 0, moving_ns = 0;
  std::uint32_t late = instrumentation::kNoId;  ///< for which it waited most
  std::int64_t late_ns = 0;
};
inline constexpr std::int64_t kLate = 10'000;  ///< ns; below, clocks and queues decide who is last
struct DelayAttribution {
  std::vector<Exposure> exposed;      ///< one per rank, in the order of the input
  std::vector<Lateness> late;         ///< ranks that others waited for, by rank
  std::vector<WaitedFor> pairs;       ///< the parts of `late`, by waiter, then by late rank
  std::vector<GroupExposure> groups;  ///< in the order of the input
};
/// A collective counts as transfer from its begin if no rank recorded when all had entered and the begin of
/// only one rank is known.
[[nodiscard]] DelayAttribution attribute_delays(std::span<const RankActivity> ranks);

}  // namespace shardscope::analysis
