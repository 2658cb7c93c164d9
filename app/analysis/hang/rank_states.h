// The state of each rank at the end of the store's events.
#pragma once

#include <cstdint>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/analysis/hang/issued_collectives.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// `known`: collectives issued since `from_ns`. Does not set waits_for (waits.h).
[[nodiscard]] RankState state_of(const store::Store& store, const store::RankRow& row,
                                 const IssuedCollectives& known, std::int64_t from_ns);
[[nodiscard]] bool is_over(const RankState& one);
/// The oldest open collective of a rank: later ones of other streams or groups are blocked by it. Null if
/// none is open.
[[nodiscard]] const Issue* oldest_open(const IssuedCollectives& known);
/// The events of a stopped or gone rank end before its activity did: removes a collective from its state that
/// other members left more than two steps ago, since it is over there as well.
void drop_completed_collectives(const std::vector<IssuedCollectives>& recent, std::vector<RankState>& ranks);

}  // namespace shardscope::analysis
