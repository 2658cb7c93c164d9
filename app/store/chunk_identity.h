// The fields that an encoded chunk's header and its row in a recording have in common. A checksum of the
// bytes alone would not detect that they are in the row of another chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/store/database.h"

namespace shardscope::store {

struct ChunkIdentity {
  std::uint32_t rank = 0, parts = 1;
  std::uint64_t sequence = 0, events = 0, dropped_before = 0, lost_before = 0;
  std::int64_t begin_ns = 0, end_ns = 0, clock_offset_ns = 0, clock_residual_ns = 0;
  friend bool operator==(const ChunkIdentity&, const ChunkIdentity&) = default;
};

/// Read from the chunk's header. Throws like Chunk::verify().
[[nodiscard]] ChunkIdentity identity_of(const std::byte* data, std::size_t bytes);

/// The columns of table chunks that row_identity() reads, with a comma before the first.
inline constexpr const char* kIdentityColumns =
    ", rank, parts, sequence, events, dropped_before, lost_before, begin_ns, end_ns, clock_offset_ns, "
    "clock_residual_ns";
[[nodiscard]] ChunkIdentity row_identity(const Statement& row, int first_column);

/// Throws std::runtime_error naming the chunk of the bytes where rank or sequence differ.
void must_be(const ChunkIdentity& of_row, const ChunkIdentity& of_bytes);

}  // namespace shardscope::store
