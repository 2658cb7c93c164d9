// What bounds a step: the chain of work, across ranks, of which nothing could have begun earlier; and who
// waits for whom. Definitions: metrics.md 2.12. Pure: of what the ranks did in one window of time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

enum class PathPart : std::uint8_t {
  forward,        ///< computation in the phase
  backward,       ///< the same
  optimizer,      ///< the same
  compute,        ///< outside of these phases
  cpu_optimizer,  ///< of offloaded states
  transfer,       ///< a collective's bytes move, every rank has entered
  copy,           ///< between device, host and NVMe
  data,           ///< the micro-batch is not there
  checkpoint,
  idle,        ///< none of these: the host, or what is not recorded as a span
  unrecorded,  ///< events are missing
  paused       ///< by the user: in no other figure
};
inline constexpr std::size_t kPathParts = 12;
[[nodiscard]] const char* name_of(PathPart part) noexcept;   ///< "cpu_optimizer", as JSON spells it
[[nodiscard]] const char* label_of(PathPart part) noexcept;  ///< "CPU optimizer"
using PathTimes = std::array<std::int64_t, kPathParts>;

struct PathPiece {
  PathPart part{};
  std::uint32_t rank = 0;
  Interval at;
  std::uint32_t id = instrumentation::kNoId;  ///< of a transfer's gather or bucket: each lane has its own
  instrumentation::StreamId lane{};           ///< of a transfer
};

struct CriticalPath {
  Interval window;                ///< from the first rank's begin to the last one's end
  std::vector<PathPiece> pieces;  ///< in order of time, without a gap: their lengths sum to the window's
  PathTimes times{};              ///< sums of the pieces
};

/// [Note: the walk]
/// Backwards from the end of the rank that ended last. Computation, copies and waits for data are taken as
/// they lie. In an exposed collective the path follows the transfer back to when every rank had entered;
/// there it goes on with the rank that entered last, for nothing before could have been shorter without it.
/// What is left is idle. Empty without a rank whose computation is known.
[[nodiscard]] std::optional<CriticalPath> critical_path(std::span<const RankActivity> ranks);

/// Exposed communication of one rank: waiting for others to enter, and bytes that move.
struct Exposure {
  std::uint32_t rank = 0;
  std::int64_t waiting_ns = 0, moving_ns = 0;  ///< their sum is the rank's exposed communication
  /// Parts of moving_ns: while a gather moved bytes, and while only reductions did.
  std::int64_t gather_moving_ns = 0, reduce_moving_ns = 0;
  std::int64_t link_ns = 0;  ///< bytes moved, hidden or not
  /// What gathers that began after a stretch without one would hide, had they begun in that stretch: each as
  /// much as it was exposed, and as the stretch was long since the last update of parameters.
  std::int64_t hideable_gather_ns = 0;
};
/// How long others waited for a rank that entered last.
struct Lateness {
  std::uint32_t rank = 0;
  std::int64_t others_waited_ns = 0;  ///< exposed, summed over the others
  std::uint32_t collectives = 0;      ///< which it entered last, by more than kLate
};
/// How long one rank waited for another that came last, exposed.
struct WaitedFor {
  std::uint32_t waiter = 0, late = 0;
  std::int64_t ns = 0;
  friend bool operator==(const WaitedFor&, const WaitedFor&) = default;
};
inline constexpr std::int64_t kLate = 10'000;  ///< ns; below, clocks and queues decide who is last
struct DelayAttribution {
  std::vector<Exposure> exposed;  ///< of each rank, in the order given
  std::vector<Lateness> late;     ///< of the ranks that others waited for, by rank
  std::vector<WaitedFor> pairs;   ///< that sum to `late`, by waiter, then by who was late
};
/// A collective of which no rank recorded when all had entered, and only one rank's begin is known, is taken
/// for bytes that move.
[[nodiscard]] DelayAttribution blame(std::span<const RankActivity> ranks);

}  // namespace shardscope::analysis
