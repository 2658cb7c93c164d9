// The uncompressed columns of a chunk: encodes and decodes events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::store {

/// The columns of a chunk's events. Events of `states` have their own, or are among `others` when
/// `state_events` is 0.
struct ChunkColumns {
  std::span<const std::byte> states, others;
  std::size_t state_events = 0;
};

/// Encodes events with the calling thread's own encoder. Valid until the thread's next call. `apart`: state
/// events get columns of their own; see [Note: states apart].
[[nodiscard]] ChunkColumns encode_columns(const std::vector<instrumentation::Event>& events, bool apart);

// All throw std::runtime_error naming the damaged column.
/// `count` events of both, in the chunk's order.
[[nodiscard]] std::vector<instrumentation::Event> decode_columns(const ChunkColumns& columns,
                                                                 std::size_t count);
// `room`: a vector whose memory is reused; its content is discarded.
/// The `count` events of `states` alone.
[[nodiscard]] std::vector<instrumentation::Event> decode_states(
    std::span<const std::byte> states, std::size_t count, std::vector<instrumentation::Event> room = {});
/// The `others` alone, of a chunk of `count` events of which `state_events` are in `states`.
[[nodiscard]] std::vector<instrumentation::Event> decode_others(
    std::span<const std::byte> others, std::size_t count, std::size_t state_events,
    std::vector<instrumentation::Event> room = {});

}  // namespace shardscope::store
