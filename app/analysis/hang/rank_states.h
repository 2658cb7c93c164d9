// What each rank does at the end of what a store holds.
#pragma once

#include <cstdint>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/analysis/hang/issued_collectives.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// `known`: what the rank issued since `from_ns`. Whom it waits for is left open (waits.h).
[[nodiscard]] RankState state_of(const store::Store& store, const store::RankRow& row,
                                 const IssuedCollectives& known, std::int64_t from_ns);
[[nodiscard]] bool is_over(const RankState& one);
/// The oldest collective that a rank is in: later ones of other streams or groups wait behind it. Null: in
/// none.
[[nodiscard]] const Issue* oldest_open(const IssuedCollectives& known);
/// The events of a rank that is stopped or gone end earlier than what it did: takes a collective from it that
/// others have left two steps ago, which is over on it too.
void forget_what_is_over(const std::vector<IssuedCollectives>& recent, std::vector<RankState>& ranks);

}  // namespace shardscope::analysis
