// Which rank waits in which collective for whom, and which rank the others miss.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/analysis/hang/issued_collectives.h"
#include "app/store/store.h"

namespace shardscope::analysis {

constexpr std::int64_t kLongNs = 1'000'000'000;  ///< longer than a rank's events are on their way

/// The rank that failed first, and not as the others did, as where all are ended from outside.
[[nodiscard]] std::optional<std::uint32_t> failed_by_itself(const store::Store& store);
/// Killed so soon after its last event that arrived that those after it are lost: what it did then is not
/// known, whatever it had begun.
[[nodiscard]] bool was_cut_off(const store::Store& store, std::uint32_t rank, std::int64_t now_ns);
/// Fills in whom each rank waits for: of its oldest open collective that lacks a member, the members that
/// have not begun it. Ranks that are over wait for none, unless all are, or the collective ended by an error:
/// then they did when they were ended, but for `cut_off`, which went on after its last event that arrived.
/// Returns these collectives, by index of the rank; null where it waits for no rank.
[[nodiscard]] std::vector<const Issue*> find_waits(const std::vector<IssuedCollectives>& recent,
                                                   std::optional<std::uint32_t> cut_off,
                                                   std::vector<RankState>& ranks);
/// Of the collectives in `blocked` that lack `rank`, the one that began first; null where none does.
[[nodiscard]] const Issue* oldest_without(const std::vector<const Issue*>& blocked,
                                          const std::vector<RankState>& ranks, std::uint32_t rank);
/// The rank that most others miss; of several the one that waits for no rank itself. kNoId: none is missed.
[[nodiscard]] std::uint32_t most_missed(const std::vector<RankState>& ranks);
/// Where no rank waits in a recorded collective: the rank that failed first, or else one that is gone or
/// stopped. Null where all go on or the run is paused.
[[nodiscard]] const RankState* without_waits(const store::Store& store, const std::vector<RankState>& ranks);

}  // namespace shardscope::analysis
