// The columns of a chunk, without their compression: events to bytes and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::store {

/// The columns of a chunk's events. Those of `states` are apart, or among the others when `state_events` is
/// 0.
struct ChunkColumns {
  std::span<const std::byte> states, others;
  std::size_t state_events = 0;
};

/// The events as columns, by a calling thread's own encoder. Valid until the thread calls again. `apart`: the
/// events of the state have columns of their own; see [Note: states apart].
[[nodiscard]] ChunkColumns encode_columns(const std::vector<instrumentation::Event>& events, bool apart);

// All throw std::runtime_error naming the column that is damaged.
/// `count` events from both, in the chunk's order.
[[nodiscard]] std::vector<instrumentation::Event> decode_columns(const ChunkColumns& columns,
                                                                 std::size_t count);
// `room`: memory that is used, whatever it holds.
/// The `count` events of `states` alone.
[[nodiscard]] std::vector<instrumentation::Event> decode_states(
    std::span<const std::byte> states, std::size_t count, std::vector<instrumentation::Event> room = {});
/// The others alone, of a chunk of `count` events of which `state_events` are apart.
[[nodiscard]] std::vector<instrumentation::Event> decode_others(
    std::span<const std::byte> others, std::size_t count, std::size_t state_events,
    std::vector<instrumentation::Event> room = {});

}  // namespace shardscope::store
