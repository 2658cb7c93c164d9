// Sums of blocks whose events are not kept: several blocks of a rank become one with their totals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "app/store/block.h"

namespace shardscope::store {

/// Instants that are kept one by one, each or the first (EventTrait): those that later steps depend on
/// (changes of detail), and those that name the cause of a time (the first gradient that was not finite).
[[nodiscard]] constexpr bool is_rare(ev::EventKind kind) noexcept {
  return ev::has_trait(kind, ev::EventTrait::kept_each) || ev::has_trait(kind, ev::EventTrait::kept_first) ||
         ev::has_trait(kind, ev::EventTrait::kept_first_of_stretch);
}
inline constexpr std::size_t kRareKindCount = 0
#define EVENT(number, name, ...) +(is_rare(ev::EventKind::name) ? 1 : 0)
#include "instrumentation/event_kinds.def"
    ;
inline constexpr auto kRareKinds = [] {
  std::array<ev::EventKind, kRareKindCount> out{};
  std::size_t next = 0;
  for (std::uint16_t number = 1; number <= static_cast<std::uint16_t>(ev::kLastEventKind); ++number) {
    if (is_rare(static_cast<ev::EventKind>(number))) out[next++] = static_cast<ev::EventKind>(number);
  }
  return out;
}();
/// Reduces a block's rare events, in order of time, to the first of each kind with only the first kept.
void keep_firsts_of_stretch(std::vector<ev::Event>& rare);

/// Makes `block` a sum, whose events are deleted: removes the data that only serves to decode them.
void begin_sum(Block& block);
/// The same for a block decoded as BlockHead.
void begin_sum(BlockHead& head);
/// Adds the block that follows `sum`, both of one rank. Totals of spans, counts of instants, memory peaks and
/// missing events are then exact for both; levels of detail and memory over time become as coarse as one
/// block's. False, with `sum` unchanged: a count would overflow.
[[nodiscard]] bool add_to_sum(Block& sum, Block next);

}  // namespace shardscope::store
