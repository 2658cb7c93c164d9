#include "app/store/chunk_identity.h"

#include <stdexcept>

namespace shardscope::store {

ChunkIdentity row_identity(const Statement& row, int first_column) {
  const auto number = [&](int column) {
    return static_cast<std::uint64_t>(row.integer(first_column + column));
  };
  return {.rank = static_cast<std::uint32_t>(number(0)),
          .parts = static_cast<std::uint32_t>(number(1)),
          .sequence = number(2),
          .events = number(3),
          .dropped_before = number(4),
          .lost_before = number(5),
          .begin_ns = row.integer(first_column + 6),
          .end_ns = row.integer(first_column + 7),
          .clock_offset_ns = row.integer(first_column + 8),
          .clock_residual_ns = row.integer(first_column + 9)};
}

void must_be(const ChunkIdentity& of_row, const ChunkIdentity& of_bytes) {
  // The other columns of a row have a checksum of their own: where they are changed, the bytes are still
  // those of this chunk.
  if (of_row.rank == of_bytes.rank && of_row.sequence == of_bytes.sequence) return;
  throw std::runtime_error("chunk: its bytes are those of another chunk (rank " +
                           std::to_string(of_bytes.rank) + ", sequence " + std::to_string(of_bytes.sequence) +
                           ")");
}

}  // namespace shardscope::store
