// How much shorter a step would be if one part of its critical path took no time: by the part, or by less if
// another chain of work is next. Definitions: metrics.md 2.12. Pure: a function of the ranks' activity.
#pragma once

#include <cstdint>
#include <span>

#include "app/analysis/critical_path.h"
#include "app/analysis/rank_activity.h"

namespace shardscope::analysis {

/// [Note: a part that takes no time]
/// The step is replayed from its own times on all ranks, once as recorded and once without the part:
///   - A rank executes its stretches in order. It issues each collective where it had begun it. In exposed
///     communication it waits for the collectives that ended there; the remainder keeps its length.
///   - A collective begins when every rank has issued it and the previous one in its lane has ended. Its
///     transfer time is unchanged.
///   - A collective that began right after the previous one in its lane was queued; its time of issue is
///     unknown. The replay issues it early enough to begin right after that one.
///   - A rank is done when its stretches and all collectives that had ended in its window are done.
/// An estimate, rather too large: collectives hidden behind computation are waited for only at the end of the
/// step, since where they were needed is not recorded. It is too small if a rank did not need a collective
/// that ended in a stretch of exposed communication.
///
/// By part, in nanoseconds, at most the part's own time in `path`; parts below 1 % of the step are not
/// replayed and have that time. kNotReplayed: pauses, checkpoints and unrecorded time, and every part if the
/// ranks' times are inconsistent. `path`: critical_path(ranks).
inline constexpr std::int64_t kNotReplayed = -1;
[[nodiscard]] PathTimes gains_without(std::span<const RankActivity> ranks, const CriticalPath& path);
/// Whether the step could be replayed; otherwise no part has a gain.
[[nodiscard]] bool was_replayed(const PathTimes& gains) noexcept;

}  // namespace shardscope::analysis
