// Which rank waits in which collective for which, and which rank is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/analysis/hang/issued_collectives.h"
#include "app/store/store.h"

namespace shardscope::analysis {

constexpr std::int64_t kLongNs = 1'000'000'000;  ///< longer than the delivery of a rank's events

/// The rank that failed first, unless all ranks ended in the same way, as when they are killed from outside.
[[nodiscard]] std::optional<std::uint32_t> failed_by_itself(const store::Store& store);
/// Killed so soon after its last event that later events are lost: its activity at that time is unknown.
[[nodiscard]] bool was_cut_off(const store::Store& store, std::uint32_t rank, std::int64_t now_ns);
/// Sets waits_for of each rank: the members that have not begun its oldest open collective that lacks one.
/// Ranks that are over wait for none, unless all are, or the collective ended with an error: then the state
/// is that at their end, except for `cut_off`, which continued after its last event. Returns these
/// collectives by index of the rank; null if it waits for none.
[[nodiscard]] std::vector<const Issue*> find_waits(const std::vector<IssuedCollectives>& recent,
                                                   std::optional<std::uint32_t> cut_off,
                                                   std::vector<RankState>& ranks);
/// The first of the collectives in `blocked` that lacks `rank`; null if there is none.
[[nodiscard]] const Issue* oldest_without(const std::vector<const Issue*>& blocked,
                                          const std::vector<RankState>& ranks, std::uint32_t rank);
/// The rank that most ranks wait for; if several, one that waits for none itself. kNoId if there is none.
[[nodiscard]] std::uint32_t most_missed(const std::vector<RankState>& ranks);
/// If no rank waits in a recorded collective: the rank that failed first, else one that is gone or stopped.
/// Null if all are running, or the run is paused.
[[nodiscard]] const RankState* without_waits(const store::Store& store, const std::vector<RankState>& ranks);

}  // namespace shardscope::analysis
