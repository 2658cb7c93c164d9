// What a step would gain if one part of its critical path took no time: the part itself, or less where
// something else comes next. Definitions: metrics.md 2.12. Pure: of what the ranks did in one window.
#pragma once

#include <cstdint>
#include <span>

#include "app/analysis/critical_path.h"
#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

/// [Note: a part that takes no time]
/// The step is replayed from its own times, once as it was and once without the part, on all ranks:
///   - A rank goes through its stretches in their order. It issues each collective where it had begun it. In
///   a
///     stretch of exposed communication it waits for the collectives that ended there; what none of them
///     covers takes as long as it took.
///   - A collective begins when every rank has issued it and the one before it in its lane has ended. Its
///     bytes take as long as they took.
///   - A collective that began right behind the one before it in its lane was queued: when it was issued is
///   not
///     known. The replay issues it early enough to begin there.
///   - A rank is done when its stretches and all collectives that had ended in its window are done.
/// An estimate, too large rather than too small: what was hidden behind computation is waited for at the
/// step's end only, since where it was needed is not recorded. It is too small where a rank did not need what
/// ended in a stretch of exposed communication.
///
/// By part, nanoseconds, from 0 to the part's own time in `path`; that time of a part below a hundredth of
/// the step, which is not replayed. kNotReplayed: pauses, checkpoints and what is not recorded, and all where
/// the ranks' times contradict each other. `path`: critical_path(ranks).
inline constexpr std::int64_t kNotReplayed = -1;
[[nodiscard]] PathTimes gains_without(std::span<const RankActivity> ranks, const CriticalPath& path);
/// Whether the step could be replayed: else no part has a gain.
[[nodiscard]] bool was_replayed(const PathTimes& gains) noexcept;

}  // namespace shardscope::analysis
