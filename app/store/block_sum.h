// Blocks whose events are not kept: several of a rank become one that says what they sum up to.
#pragma once

#include <optional>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

/// Instants that are kept one by one: changes of detail and the first invalidation of a trace, since later
/// steps depend on them; and of each stretch the first gradient that was not finite, which names what the
/// skipped steps of that time came from.
[[nodiscard]] constexpr bool is_rare(ev::EventKind kind) noexcept {
  return kind == ev::EventKind::detail_changed || kind == ev::EventKind::trace_invalidated ||
         kind == ev::EventKind::gradient_not_finite;
}
/// Of a stretch's rare events, in order of time: leaves the first gradient_not_finite only.
void keep_first_not_finite(std::vector<ev::Event>& rare);

/// Takes `block` as one whose events go: what only helps to read those is left out.
void begin_sum(Block& block);
/// As decoded for figures alone.
void begin_sum(BlockHead& head);
/// Adds the block that follows `sum`, both of one rank. Totals of spans, counts of instants, peaks of memory
/// and what was missing are then exact for both; levels of detail and memory over time are as coarse as one
/// block's. False, with `sum` as it was: a count would not fit.
[[nodiscard]] bool add_to_sum(Block& sum, Block next);

}  // namespace shardscope::store
