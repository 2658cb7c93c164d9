// The columns of a chunk, without their compression: events to bytes and back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::store {

/// The events as columns, by a calling thread's own encoder. Valid until the thread calls again.
[[nodiscard]] std::span<const std::byte> encode_columns(const std::vector<instrumentation::Event>& events);
/// `count` events from their columns. Throws std::runtime_error naming the column that is damaged.
[[nodiscard]] std::vector<instrumentation::Event> decode_columns(const std::byte* data, std::size_t bytes,
                                                                 std::size_t count);

}  // namespace shardscope::store
